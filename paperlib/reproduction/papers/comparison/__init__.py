"""One model under every audit: what each shows, supports, needs and costs."""
