# Prints the public names of the C++ headers, one a line: Class::member, namespace::function, Enum::value. An overload
# is numbered: Pattern::add, Pattern::add#2. Constructors, destructors and operators are left out.
# The headers are formatted by clang-format and have no macros, strings with braces or nested classes to trip over.

function say(name, key) {
    key = prefix() name
    if (++seen[key] > 1) key = key "#" seen[key]
    print key
}
function prefix(text, i) {  # without the outermost namespace
    text = ""
    for (i = 2; i <= depth; i++) text = text scope[i] "::"
    return text
}
function hidden(i) {
    if (depth == 0) return 1
    for (i = 1; i <= depth; i++) if (access[i] == "private" || scope[i] == "api") return 1
    return 0
}
function without_requires(text, from, i, level, c) {  # drops `requires(...)`, which may hold parentheses
    if (!match(text, /requires *\(/)) return text
    from = RSTART
    level = 0
    for (i = RSTART + RLENGTH - 1; i <= length(text); i++) {
        c = substr(text, i, 1)
        if (c == "(") level++
        if (c == ")" && --level == 0) break
    }
    return substr(text, 1, from - 1) " " substr(text, i + 1)
}
function declaration(text, name) {
    while (match(text, /^ *(public|private|protected):/)) {
        access[depth] = text ~ /^ *public/ ? "public" : "private"
        text = substr(text, RSTART + RLENGTH)
    }
    gsub(/\[\[nodiscard\]\]/, "", text)
    if (text !~ /[A-Za-z]/ || hidden()) return
    if (text ~ /^ *(friend|using|class|struct|enum) / || text ~ /operator/) return
    text = without_requires(text)
    sub(/^ *template <[^>]*>/, "", text)
    if (text ~ /\(/) {
        sub(/\(.*/, "", text)
        name = text
        sub(/.*[^A-Za-z0-9_~]/, "", name)
        if (name == scope[depth] || name ~ /^~/) return
    } else {
        sub(/[={\[].*/, "", text)
        sub(/ *$/, "", text)
        name = text
        sub(/.*[^A-Za-z0-9_]/, "", name)
    }
    if (text ~ ("::" name "$")) return  # the definition of what a class has declared
    say(name)
}
function enumerators(text, list, n, i, name) {
    if (hidden()) return
    n = split(text, list, ",")
    for (i = 1; i <= n; i++) {
        name = list[i]
        sub(/=.*/, "", name)
        gsub(/[^A-Za-z0-9_]/, "", name)
        if (name != "") say(name)
    }
}

/^#/ { next }
{
    sub(/\/\/.*/, "")
    source = source " " $0
}
END {
    statement = ""
    for (at = 1; at <= length(source); at++) {
        c = substr(source, at, 1)
        if (skipping > 0) {  # a function's body or an initialiser
            if (c == "{") skipping++
            if (c == "}") skipping--
            continue
        }
        if (c == "(") parentheses++
        if (c == ")") parentheses--
        if (parentheses > 0) {
            statement = statement c
            continue
        }
        if (c == "{") {
            head = statement
            while (match(head, /^ *(public|private|protected):/)) {
                access[depth] = head ~ /^ *public/ ? "public" : "private"
                head = substr(head, RSTART + RLENGTH)
            }
            if (head ~ /^ *(namespace|class|struct|enum class|enum) /) {
                kind = head
                sub(/^ */, "", kind)
                name = kind
                sub(/^(namespace|class|struct|enum class|enum) +/, "", name)
                sub(/ .*/, "", name)
                depth++
                scope[depth] = name
                kinds[depth] = kind ~ /^enum/ ? "enum" : "block"
                access[depth] = kind ~ /^class/ ? "private" : "public"
                statement = ""
            } else if (head ~ /\)/) {  # a function with its body
                declaration(statement)
                statement = ""
                skipping = 1
            } else {  # an initialiser: the declaration ends at the semicolon
                statement = statement "{"
                skipping = 1
            }
        } else if (c == "}") {
            if (kinds[depth] == "enum") enumerators(statement)
            depth--
            statement = ""
        } else if (c == ";") {
            declaration(statement)
            statement = ""
        } else {
            statement = statement c
        }
    }
}
