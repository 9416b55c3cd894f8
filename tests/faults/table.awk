# Journals of sweeps as a table: fault x place x cases x what came of them. A case that was begun and not ended ended the
# job: `ended` (a file) lists those that did so with a line that says why; the others are wrong.
BEGIN { FS = "\t" }
FILENAME == ended { said[$0] = 1; next }
{ name = FILENAME; sub(/.*\//, "", name); key = name SUBSEP $2 SUBSEP $3 SUBSEP $4 SUBSEP $5 SUBSEP $6; short = $2 "\t" $3 "\t" $4 "\t" $5 "\t" $6 }
$1 == "begin" { open[key] = $4; place[key] = $2; text[key] = name "\t" short; next }
{ result = $1; fault = $4; where = $2; delete open[key] }
result != "unreached" { count(fault, where, result) }
END {
    for (key in open) count(open[key], place[key], (text[key] in said) ? "ended" : "wrong")
    places = split("declared staged drop-in", of, " ")
    print "| fault | place | cases | went on | same error on all ranks | job ended, with a line | wrong |"
    print "|---|---|---|---|---|---|---|"
    fflush()
    for (i = 1; i <= faults; ++i)
        for (p = 1; p <= places; ++p) {
            f = order[i]; w = of[p]
            if (!((f, w) in cases)) continue
            printf "| %s | %s | %d | %d | %d | %d | %d |\n", f, w, cases[f, w], n[f, w, "on"], n[f, w, "error"], n[f, w, "ended"], n[f, w, "wrong"] | "sort"
        }
    close("sort")
    printf "| **all** | | **%d** | **%d** | **%d** | **%d** | **%d** |\n", all["cases"], all["on"], all["error"], all["ended"], all["wrong"]
    exit all["wrong"] > 0
}
function count(fault, where, result) {
    if (!(fault in seen)) { seen[fault] = 1; order[++faults] = fault }
    ++cases[fault, where]; ++n[fault, where, result]; ++all["cases"]; ++all[result]
}
