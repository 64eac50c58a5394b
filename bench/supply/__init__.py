"""The race of fetchers: how one download reaches many hosts, by several engines, over links whose rate is limited."""
