// Settings: hints and variables as people set them, and as text between ranks.
//
// The input: lines NAME=VALUE; "tapioca_..." and other small letters are hints, "TAPIOCA_..." is the environment, what
// begins with "*" a default of the platform file.
#include "core/units.hpp"
#include "fuzz/fuzz.hpp"
#include "settings/settings.hpp"

namespace {

using namespace tapioca;
using fuzz::claim;

void claim_same(settings::Settings const& a, settings::Settings const& b)
{
    auto const x = a.lines(), y = b.lines();
    claim(std::equal(x.begin(), x.end(), y.begin(), y.end(),
                     [](auto const& p, auto const& q) {
                         return p.name == q.name && p.value == q.value && p.origin == q.origin;
                     }),
          "what another rank gets is the same");
}

void check_units(std::string_view text)
{
    auto const bytes = core::parse_bytes(text);
    if (bytes) claim(core::parse_bytes(std::to_string(*bytes)) == bytes, "a number of bytes is itself", text);
}

void check_failure(std::string_view text)
{
    core::Failure const failure{Errc::setting, static_cast<int>(text.size()), -1, std::string(text)};
    auto const again = core::unpack(core::pack(failure));
    claim(again.code == failure.code && again.sys_errno == failure.sys_errno && again.text == failure.text,
          "a failure travels as it is");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size)
{
    std::string_view const whole(reinterpret_cast<char const*>(data), size);
    (void)settings::unpack(whole);  // anything
    check_failure(whole);

    fuzz::Input input(data, size);
    settings::Pairs hints, environment, defaults;
    while (!input.empty()) {
        auto const line = input.until('\n');
        auto const equals = std::min(line.find('='), line.size());
        auto const value = line.substr(std::min(equals + 1, line.size()));
        auto const name = line.substr(0, equals);
        check_units(value);
        if (name.starts_with('*'))
            defaults.emplace_back(name.substr(1), value);
        else
            (name.starts_with('T') ? environment : hints).emplace_back(name, value);
    }
    auto settings = settings::resolve({}, hints, environment);
    if (!settings) {
        fuzz::claim_one_line(settings.error());
        return 0;
    }
    if (auto const status = settings::add_defaults(*settings, defaults, "platform file f.toml"); !status)
        fuzz::claim_one_line(status.error());
    claim_same(*settings, settings::unpack(settings::pack(*settings)));

    auto const again = settings::resolve(settings->options, {}, {});  // what text may set, code may set
    claim(again.has_value(), "options that were accepted are accepted", again ? "" : again.error().text);
    auto const x = settings->lines(), y = again->lines();
    claim(x.size() == y.size(), "and all of them");
    for (std::size_t i = 0; i < x.size(); ++i)
        claim(x[i].name == y[i].name && x[i].value == y[i].value, "with the same values", x[i].name);
    return 0;
}
