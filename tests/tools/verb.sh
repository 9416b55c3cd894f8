# Sourced by tests of the command's verbs, which get BIN and CMAKE and set `verb`: answers to arguments, good and bad.
bin=$1 cmake=$2
work=$(mktemp -d "${TMPDIR:-/tmp}/tapioca-$verb-test.XXXXXX")
trap 'rm -rf "$work"' EXIT
cd "$work"

fail() { echo "${verb}_test: $*" >&2; head -n 40 "$work/out" >&2; exit 1; }

shown() { # REGULAR-EXPRESSION ARGUMENTS...: a line of the output
    local words=$1
    shift
    "$bin/tapioca" "$verb" "$@" >"$work/out" 2>&1 || fail "tapioca $verb $* failed"
    grep -qE "$words" "$work/out" || fail "no '$words' from: tapioca $verb $*"
}

refused() { # WORDS-IN-THE-ANSWER ARGUMENTS...
    local words=$1 status=0
    shift
    "$bin/tapioca" "$verb" "$@" >"$work/out" 2>&1 || status=$?
    [ $status -eq 2 ] || fail "status $status from: tapioca $verb $*"
    grep -qe "$words" "$work/out" || fail "no '$words' in the answer to: tapioca $verb $*"
    [ "$(wc -l <"$work/out")" -eq 1 ] || fail "more than one line in answer to: tapioca $verb $*"
}

value() { # KEYS...: of the JSON in $work/out
    cat >"$work/value.cmake" <<-END
	file(READ "$work/out" text)
	string(JSON value GET "\${text}" $*)
	message("\${value}")
	END
    "$cmake" -P "$work/value.cmake" 2>&1
}
