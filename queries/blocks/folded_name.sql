-- title: A name in which the numbers of layers and instructions are a star: h*/attn/dot_general, fusion.*, params[*]['w'].
CREATE OR REPLACE MACRO folded_name(text) AS
text
    .regexp_replace('([A-Za-z_.\-])\d+\b', '\1*', 'g')
    .regexp_replace('\[\d+\]', '[*]', 'g');
