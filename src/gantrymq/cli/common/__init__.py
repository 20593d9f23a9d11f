"""What commands share: options and tables, times, known names, errors, lazy loading."""
