// Package where is the language of filters: it parses an expression, holds it
// against a schema, and finds the rows that it is true of.
//
//	e, err := where.Parse("label = ? AND NOT (price >= 10 OR has(image))", "cat")
//	f, err := e.Check(schema) // names become fields, literals ranges of values
//	rows, err := f.Eval(rows) // a set of rows
//
// The grammar:
//
//	expr    = term { OR term }
//	term    = factor { AND factor }
//	factor  = NOT factor | "(" expr ")" | test
//	test    = name op value | name IN "(" value { "," value } ")" | has "(" name ")"
//	op      = "=" | "!=" | "<" | "<=" | ">" | ">="
//	value   = number | string | true | false | "?"
//	name    = a letter or "_", then letters, digits, "_", "-" and "."; or any name in double quotes
//	number  = an optional sign, digits with an optional point, an optional exponent
//	string  = characters in single quotes; a quote in them is written twice
//
// AND, OR, NOT, IN, label, has, true and false are keywords, in any case; a field
// called like one stands in double quotes.
//
// A ? is a placeholder: it stands for the next of the arguments that Parse is given, which
// is a Go string, number or bool, or behind IN a slice of these, which stands for all its
// values. An argument is never read as a part of the expression.
//
// # Meaning
//
// label = 'x' is true of the rows whose set of labels has x, label != 'x' of all
// others, those without labels among them. has(m) is true of the rows that have
// modality m. A comparison with a field is false of a row that has no value
// there, != as well; NOT is true of all live rows of which its operand is false,
// so that NOT year = 2020 holds for rows without a year and year != 2020 does
// not. An IN is an = for each of its values, joined by OR.
//
// Strings are ordered by their bytes. Numbers are compared exactly with integer
// fields: year > 1.5 means year >= 2, and no digits are lost beyond 2^53. A float
// field holds numbers that were rounded to a float64, and so a literal that it is
// compared with is rounded likewise; -0 is 0. Booleans know = and != only, and IN.
//
// # Hostile input
//
// MaxBytes and MaxDepth bound an expression, and with it the stack of everything
// that walks over it; MaxArgBytes bounds its arguments. The time to evaluate is at most that of reading, for each
// comparison, all that is indexed of its field.
package where
