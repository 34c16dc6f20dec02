"""analysis_failure_test: passes when a target is refused at analysis, with a given text in the refusal."""

_allow_failures = analysis_test_transition(
    settings = {"//command_line_option:allow_analysis_failures": "True"},
)

def _analysis_failure_test_impl(ctx):
    # Bazel makes a list of a label attribute that has a transition.
    target = ctx.attr.target_under_test
    if type(target) == "list":
        target = target[0]
    if AnalysisFailureInfo not in target:
        return [AnalysisTestResultInfo(success = False, message = "%s was accepted" % target.label)]
    causes = "\n".join([cause.message for cause in target[AnalysisFailureInfo].causes.to_list()])
    return [AnalysisTestResultInfo(
        success = ctx.attr.message in causes,
        message = "expected the refusal to say: %s\nbut it says: %s" % (ctx.attr.message, causes),
    )]

analysis_failure_test = rule(
    implementation = _analysis_failure_test_impl,
    analysis_test = True,
    attrs = {
        "message": attr.string(mandatory = True),
        "target_under_test": attr.label(cfg = _allow_failures, mandatory = True),
    },
)
