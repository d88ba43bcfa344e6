# placeholder replaced by adapters owner
