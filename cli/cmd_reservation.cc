// xce reservation create|list|delete: hosts that are kept for some users and queues for a time.
#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cli/commands.h"
#include "cli/exit_code.h"
#include "cli/labels.h"
#include "cli/parse.h"
#include "cli/table.h"
#include "cli/terminal.h"
#include "cli/when.h"
#include "cli/words.h"

namespace xce::cli {
namespace {

struct ReservationOptions {
  std::vector<std::string> names;
  std::string hosts, cpus, start = "now", end, duration, users, queues, comment;
  bool quiet = false;
};

std::vector<const char*> pointers(const std::vector<std::string>& from) {
  std::vector<const char*> out;
  for (const std::string& each : from) out.push_back(each.c_str());
  return out;
}

// As parse_when, with "+2h" for a time to come.
absl::StatusOr<int64_t> parse_time(const std::string& text, int64_t now_ms) {
  if (text.empty() || text[0] != '+') return parse_when(text, now_ms);
  const auto ahead_s = parse_duration_s(text.substr(1));
  if (!ahead_s.ok()) return ahead_s.status();
  return now_ms + int64_t{*ahead_s} * 1000;
}

absl::Status read_window(const ReservationOptions& options, int64_t now_ms, xce_reservation_t* to) {
  const auto start = parse_time(options.start, now_ms);
  if (!start.ok()) return start.status();
  to->start_ms = options.start == "now" ? 0 : *start;
  if (options.end.empty() == options.duration.empty())
    return absl::InvalidArgumentError("give its end, by either --end or --duration");
  if (!options.end.empty()) {
    const auto end = parse_time(options.end, now_ms);
    if (!end.ok()) return end.status();
    to->end_ms = *end;
    return absl::OkStatus();
  }
  const auto duration_s = parse_duration_s(options.duration);
  if (!duration_s.ok()) return duration_s.status();
  to->end_ms = *start + int64_t{*duration_s} * 1000;
  return absl::OkStatus();
}

absl::StatusOr<int> run_create(const Context& context, const ReservationOptions& options) {
  const std::vector<std::string> hosts = split_commas(options.hosts),
                                 users = split_commas(options.users),
                                 queues = split_commas(options.queues);
  const std::vector<const char*> host_names = pointers(hosts), user_names = pointers(users),
                                 queue_names = pointers(queues);
  xce_reservation_t reservation{};
  reservation.name = options.names[0].c_str();
  reservation.hosts = host_names.data();
  reservation.nhosts = host_names.size();
  reservation.users = user_names.data();
  reservation.nusers = user_names.size();
  reservation.queues = queue_names.data();
  reservation.nqueues = queue_names.size();
  reservation.comment = options.comment.c_str();
  if (!options.cpus.empty()) {
    const auto cpus = parse_number(options.cpus, 1, UINT32_MAX);
    if (!cpus.ok()) return cpus.status();
    reservation.cpus = static_cast<uint32_t>(*cpus);
  }
  auto session = Session::open(context.connection);
  if (!session.ok()) return session.status();
  const auto now_ms = (*session)->now_ms();
  if (!now_ms.ok()) return now_ms.status();
  if (const absl::Status status = read_window(options, *now_ms, &reservation); !status.ok())
    return status;
  const auto rc = (*session)->call(
      absl::StrCat("cannot create reservation ", options.names[0]), [&](xcecli_ctx_t ctx) {
        return xcecli_reservationctrl(ctx, XCE_RESERVATION_CREATE, &reservation);
      });
  if (!rc.ok()) return rc.status();
  if (context.json)
    print_json(Json{{"reservations", options.names}});
  else if (!options.quiet)
    print(absl::StrCat("Created reservation ", options.names[0], "\n"));
  return kOk;
}

absl::StatusOr<int> run_delete(const Context& context, const ReservationOptions& options) {
  auto session = Session::open(context.connection);
  if (!session.ok()) return session.status();
  for (const std::string& name : options.names) {
    xce_reservation_t reservation{};
    reservation.name = name.c_str();
    const auto rc =
        (*session)->call(absl::StrCat("cannot delete reservation ", name), [&](xcecli_ctx_t ctx) {
          return xcecli_reservationctrl(ctx, XCE_RESERVATION_REMOVE, &reservation);
        });
    if (!rc.ok()) return rc.status();
    if (!context.json && !options.quiet) print(absl::StrCat("Deleted reservation ", name, "\n"));
  }
  if (context.json) print_json(Json{{"reservations", options.names}});
  return kOk;
}

std::string names_of(const char* const* names, size_t n) {
  return absl::StrJoin(std::vector<std::string>(names, names + n), ",");
}

// "ann,bob, queue lab".
std::string for_words(const xce_reservation_t& reservation) {
  std::string out = names_of(reservation.users, reservation.nusers);
  if (reservation.nqueues == 0) return out;
  return absl::StrCat(out, out.empty() ? "" : ", ", reservation.nqueues == 1 ? "queue " : "queues ",
                      names_of(reservation.queues, reservation.nqueues));
}

absl::StatusOr<int> run_list(const Context& context) {
  auto session = Session::open(context.connection);
  if (!session.ok()) return session.status();
  xce_reservation_t* list = nullptr;
  size_t n = 0;
  const auto rc = (*session)->call("cannot list reservations", [&](xcecli_ctx_t ctx) {
    return xcecli_reservationlist(ctx, &list, &n);
  });
  if (!rc.ok()) return rc.status();
  const std::unique_ptr<xce_reservation_t, void (*)(xce_reservation_t*)> owner(
      list, [](xce_reservation_t* r) { xce_free_reservations(r, 0); });
  if (context.json) {
    Json rows = Json::array();
    for (size_t i = 0; i < n; ++i) rows.push_back(reservation_json(list[i]));
    print_json(Json{{"reservations", rows}});
    return kOk;
  }
  Table table({{"RESERVATION", Align::kLeft, 30},
               {"HOSTS", Align::kLeft, 30},
               {"CPUS", Align::kRight},
               {"FROM"},
               {"UNTIL"},
               {"FOR", Align::kLeft, 30},
               {"COMMENT", Align::kLeft, 30}});
  for (size_t i = 0; i < n; ++i) {
    const xce_reservation_t& r = list[i];
    table.add_row({printable(r.name), printable(names_of(r.hosts, r.nhosts)),
                   r.cpus == 0 ? std::string("all") : absl::StrCat(r.cpus), local_time(r.start_ms),
                   local_time(r.end_ms), printable(for_words(r)), printable(r.comment)});
  }
  print(table.render(terminal_width(), use_colour()));
  return kOk;
}

}  // namespace

void register_reservations(Registry* registry) {
  Command& reservation = registry->add(
      "reservation", "hosts kept for some users and queues for a time: create, list, delete",
      "  xce reservation create exam --hosts n1,n2 --start '2026-12-01 09:00' --duration 2h "
      "--users ann\n"
      "  xce reservation list");
  reservation.app->require_subcommand(1);
  auto made = std::make_shared<ReservationOptions>();
  Command& create =
      registry->add("create", "keep hosts, or cpus of them; for root",
                    "  xce reservation create lab --hosts n1 --cpus 8 --duration 1d --queues lab",
                    reservation.app);
  CLI::App* app = create.app;
  app->add_option("NAME", made->names, "the reservation")->required()->expected(1);
  app->add_option("--hosts", made->hosts, "which hosts: n1,n2")->required()->type_name("LIST");
  app->add_option("--cpus", made->cpus, "so many of each host; the whole hosts unless given")
      ->type_name("N");
  app->add_option("--start", made->start, "now, +2h, 14:30, or 2026-12-01 09:00")
      ->type_name("TIME")
      ->capture_default_str();
  app->add_option("--end", made->end, "likewise")->type_name("TIME");
  app->add_option("--duration", made->duration, "how long, instead of --end: 90m, 2h, 3d")
      ->type_name("TIME");
  app->add_option("--users", made->users, "for jobs of these users")->type_name("LIST");
  app->add_option("--queues", made->queues, "for jobs of these queues")->type_name("LIST");
  app->add_option("--comment", made->comment, "for people")->type_name("TEXT");
  app->add_flag("--quiet", made->quiet, "print nothing");
  create.run = [made](const Context& c) { return run_create(c, *made); };

  Command& list = registry->add("list", "list the reservations, those to come too",
                                "  xce reservation list", reservation.app);
  list.run = run_list;

  auto gone = std::make_shared<ReservationOptions>();
  Command& remove = registry->add("delete", "take reservations back; for root",
                                  "  xce reservation delete exam", reservation.app);
  remove.app->add_option("NAME", gone->names, "reservations")->required();
  remove.app->add_flag("--quiet", gone->quiet, "print nothing");
  remove.run = [gone](const Context& c) { return run_delete(c, *gone); };
}

}  // namespace xce::cli
