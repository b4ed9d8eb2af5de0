// Package where is the language of filters. It parses an expression, resolves it
// against a schema, and finds the rows for which it is true. It imports roaring, words and
// internal/instant; it does not know where rows and fields are stored.
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
//	test    = name op value | name IS [ NOT ] NULL | has "(" ( name | label ) ")" |
//	          name [ NOT ] ( IN "(" value { "," value } ")" | BETWEEN value AND value |
//	          LIKE value | ILIKE value | CONTAINS value )
//	op      = "=" | "==" | "!=" | "<" | "<=" | ">" | ">="
//	value   = number | string | true | false | "?"
//	name    = a letter or "_", then letters, digits, "_", "-" and "."; or any name in double quotes
//	number  = an optional sign, digits with an optional point, an optional exponent
//	string  = characters in single quotes; a quote in them is written twice
//
// AND, OR, NOT, IN, label, has, true and false are keywords, in any case. A field with
// such a name is written in double quotes.
//
// A ? is a placeholder: it stands for the next of the arguments that Parse is given, which
// is a Go string, number, bool or time.Time, or behind IN a slice of these, which stands for all its
// values. An argument is never read as a part of the expression.
//
// # Meaning
//
// label = 'x' is true for the rows whose set of labels has x. label != 'x' is true for
// all others, including those without labels. has(m) is true for the rows that have
// modality m, or a value of field m; has(label) for those that have any label; has("label") asks for a
// modality or field of that name. year IS NOT NULL is has(year) for a field, and year IS NULL is its NOT.
// A comparison with a field is false for a row that has no value there,
// even with != or NOT IN. NOT before a test is true for all live rows for which the test is false: NOT year
// = 2020 holds for rows without a year, and year != 2020 does not. An IN is an = for
// each of its values, joined by OR. BETWEEN includes both of its values. == is =.
//
// In a pattern of LIKE a % is any text, and a _ any character; %, _ and \ stand for themselves behind a \.
// ILIKE is LIKE, and CONTAINS 'red star' finds these characters anywhere, both in any case (words.Fold).
//
// Strings are ordered by their bytes. Numbers are compared exactly with integer fields:
// year > 1.5 means year >= 2, and no digits are lost beyond 2^53. A float field holds
// numbers that were rounded to float64, so a literal is rounded in the same way; -0 and 0
// are one number. Booleans allow only =, != and IN. Times are
// strings in the forms that instant.Parse reads, or arguments; they are compared in microseconds.
//
// # Hostile input
//
// MaxBytes and MaxDepth bound an expression, and with it the stack of every walk over
// it. MaxArgBytes bounds its arguments. A pattern takes the time of the string that it is compared with
// (Pattern). Evaluating takes at most the time of reading, for
// each comparison, everything that is indexed for its field; and for fields without an index, once
// the items. With an index of words, CONTAINS, LIKE and ILIKE read only the items that have trigrams of the
// pattern, if it has three characters in a row.
//
// # Proof
//
// An Expr and a Filter are immutable and may be shared; there is no goroutine and no lock.
// The stages are files: lex.go, parse.go with args.go, check.go with pattern.go, and eval.go.
// The tests compare every kind of test with its definition
// (eval_test.go, TestIntegersCompareExactly, TestFloatsCompare, TestMissingValues), and print
// and parse random expressions (TestPrintedExpressionsParse).
package where
