"""Parts of pages: the frame, tables, dialogs, and what loads by itself and retries."""
