// Package jsonform has the forms in which answers and statistics leave the program as JSON:
// those of --json, and of the API of explore. An item has its own, see db.Item.MarshalJSON.
//
// Their names are a contract that scripts rely on: names may be added, and none changes.
package jsonform
