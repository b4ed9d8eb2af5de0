// Package common has what experiments share: how they start, flags, tables and medians. Each experiment is a
// package that returns its command, and package main lists them all.
//
// An experiment may import every package of the product; no package of the product can import an experiment,
// as they are in another module. This package imports none.
package common
