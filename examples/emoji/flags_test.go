package main

import "testing"

// A flag has the language of its country if that is the home of most who speak it.
func TestSpeech(t *testing.T) {
	for char, want := range map[string]string{
		"🇫🇷": "French", "🇯🇵": "Japanese", "🇩🇪": "German", "🇬🇷": "Greek", "🇰🇷": "Korean", "🇺🇸": "English",
		"🇧🇷": "Portuguese",
		"🇨🇦": "", "🇦🇹": "", "🇬🇫": "", "🇪🇺": "", "🇺🇳": "", "🏴‍☠️": "", "🐱": "", "": "", "🇫": "",
	} {
		if got := speech(char); got != want {
			t.Errorf("%s: %q, want %q", char, got, want)
		}
	}
}
