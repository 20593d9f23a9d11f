"""What commands share: options, printing, times, checks of names, errors, lazy loading."""
