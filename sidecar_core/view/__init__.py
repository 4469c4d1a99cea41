"""Events as HTML, tables and figures. Nothing here imports Gradio."""
