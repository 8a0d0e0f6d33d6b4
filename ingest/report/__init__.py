"""Pictures of a run: the report page, static pictures and the sparkline of `xbuf show`.

    data.py ──► layout.py, curve.py ──► raster.py ──► picture.py ──► SVG, PNG
       │                                                 │
       └──────► payload.py (columns.py) ──────────────► page.py ──► HTML with assets/*.js

Everything is read from the database by the statements in `*.sql`. The page carries buffers alone: its script
derives the curve and the peak from them, by another algorithm than the import's.
"""
