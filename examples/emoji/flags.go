package main

import (
	"golang.org/x/text/language"
	"golang.org/x/text/language/display"
)

// speech returns the English name of the language of the country whose flag char is: "French" of 🇫🇷,
// which is also what things from there are called. It is the language that most people there speak, if
// there is no country where more people speak it, as Unicode's CLDR knows them: so 🇨🇦 has none. It
// returns "" where char is no flag.
func speech(char string) string {
	region, err := language.ParseRegion(country(char))
	if err != nil {
		return ""
	}
	tag, err := language.Compose(region)
	if err != nil {
		return ""
	}
	base, _ := tag.Base()
	most, err := language.Compose(base)
	if err != nil {
		return ""
	}
	if home, _ := most.Region(); home != region {
		return ""
	}
	return display.English.Languages().Name(most)
}

// country returns the two letters of a flag, which is a pair of regional indicators; "" of anything else.
func country(char string) string {
	letters := []rune(pictureID(char))
	if len(letters) != 2 {
		return ""
	}
	for i, r := range letters {
		if r < '🇦' || r > '🇿' {
			return ""
		}
		letters[i] = 'A' + r - '🇦'
	}
	return string(letters)
}
