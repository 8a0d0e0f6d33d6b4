-- title: op_name without what only the release of JAX decides, to compare two compilations.
-- note: Each rule is a line, with the releases of jaxlib that print what it takes away.
CREATE OR REPLACE MACRO plain_op_name(op_name) AS
op_name
    -- 0.10 on: merged instructions are (a/b:c/d); the first name ends at a colon outside of brackets, 3 deep here.
    .regexp_replace('(^|/)[(]((?:[^():]|[(](?:[^()]|[(](?:[^()]|[(][^()]*[)])*[)])*[)])+):.*[)]$', '\1\2', 's')
    -- to 0.4.26: the primitive's parameters, sort[dimension=0 is_stable=True]
    .regexp_replace('\[\w+=.*\]$', '', 's')
    -- jit(main) to 0.6; the function may have been renamed between two versions
    .regexp_replace('^p?jit[(][^/]*[)]/(?:jit[(]main[)]/)?', '')
    -- to 0.4.20
    .regexp_replace('(^|/)remat(/|$)', '\1checkpoint\2', 'g')
    -- 0.4.25 on, 0.7 on
    .regexp_replace('(?:rematted_computation|closed_call)/', '', 'g')
    -- 0.7 on: the function forward within itself backward
    .regexp_replace('(transpose[(]jvp[(][^/]*[)][)])/jvp[(][^/]*[)]', '\1', 'g')
    -- to 0.6 for loops, until today for some calls: the scope within the brackets of what was done to it
    .regexp_replace('\b((?:(?:transpose|jvp|vmap|checkpoint)[(])+)(while|cond|checkpoint|shard_map|jit[(][^()]*[)])([)]+)', '\1\3/\2', 'g')
    -- 0.7 on: differentiated within what is differentiated, as a checkpoint is
    .regexp_replace('\bjvp[(]jvp[(]([^()]*)[)][)]', 'jvp(\1)', 'g');
