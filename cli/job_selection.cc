#include "cli/job_selection.h"

#include "cli/commands.h"

namespace xce::cli {

std::string JobSelection::owner() const { return mine ? own_user_name() : user; }

void add_selection(CLI::App* command, JobSelection* selection, const SelectionHelp& help) {
  command->add_option("ID", selection->ids, "only these jobs, arrays or tasks");
  command->add_option("-s,--state", selection->state, help.state)->type_name("STATE,...");
  command->add_option("-u,--user", selection->user, "of this user")->type_name("USER");
  command->add_flag("--mine", selection->mine, "of yours");
  command->add_option("-q,--queue", selection->queue, help.queue)->type_name("QUEUE");
  command->add_option("-w,--host", selection->host, help.host)->type_name("HOST");
  command->add_option("-n,--name", selection->name, "of this name")->type_name("NAME");
}

xce_job_filter_t filter_of(const JobSelection& selection, const std::string& owner) {
  const auto given = [](const std::string& s) { return s.empty() ? nullptr : s.c_str(); };
  xce_job_filter_t filter{};
  filter.user = given(owner);
  filter.queue = given(selection.queue);
  filter.host = given(selection.host);
  filter.name = given(selection.name);
  filter.descending = true;
  return filter;
}

}  // namespace xce::cli
