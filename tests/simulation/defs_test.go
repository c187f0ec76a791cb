package simulation

import "testing"

func TestEveryDefinitionOfThePoolIsValid(t *testing.T) {
	for n := range poolSize {
		if _, err := definitionOf(n); err != nil {
			t.Fatal(err)
		}
	}
}
