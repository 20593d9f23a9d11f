"""The producer: plain sends, transactions with check-back, requests, recalls, published epochs."""
