# Error messages for requested files that no rule makes; Snakemake would only say that there is no rule. If another
# workflow uses this one as a module, these rules are left out, because its own rules may make such files.
if Path(workflow.basedir) in (CHECKOUT, CHECKOUT / "workflow"):

    rule unmade_figure:
        input:
            asks(explain_figure),
        output:
            "plots/{unmade}",
        wildcard_constraints:
            unmade=f"(?!{made_figures()}$).+",

    rule other_scale:
        input:
            asks(lambda wildcards: refuse_scale(f"results/{wildcards.other}/{wildcards.rest}", wildcards.other)),
        output:
            "results/{other}/{rest}",
        wildcard_constraints:
            other="|".join(map(re.escape, OTHER_SCALES)) or "(?!)",
            rest=".+",
