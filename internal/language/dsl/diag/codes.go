// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package diag

import (
	_ "embed"
	"slices"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/tools/txtar"
)

// A Code names a kind of mistake. Codes are stable: the meaning of a code never changes, and no
// code is reused.
type Code string

// The codes. [Codes] explains each of them.
const (
	IllegalCharacter  Code = "CK0001"
	InvalidUTF8       Code = "CK0002"
	ByteOrderMark     Code = "CK0003"
	CarriageReturn    Code = "CK0004"
	UnclosedQuote     Code = "CK0005"
	BadEscape         Code = "CK0006"
	NeedsQuotes       Code = "CK0007"
	UnclosedReference Code = "CK0008"
	BadReference      Code = "CK0009"
	BadComment        Code = "CK0010"
	UnknownStatement  Code = "CK0011"
	Unexpected        Code = "CK0012"
	UnclosedBlock     Code = "CK0013"
	StrayBrace        Code = "CK0014"
	MissingBrace      Code = "CK0015"
	UnclosedArguments Code = "CK0016"

	DuplicateName    Code = "CK0101"
	BadName          Code = "CK0102"
	UnknownState     Code = "CK0103"
	RepeatedArgument Code = "CK0104"
	ReservedName     Code = "CK0105"
	NotExported      Code = "CK0106"
	NameCollision    Code = "CK0107"
	BadGroupVersion  Code = "CK0108"
	BadPackagePath   Code = "CK0109"
	BadKind          Code = "CK0110"

	UnknownKind         Code = "CK0201"
	UnboundGroupVersion Code = "CK0202"
	PackageNotLoaded    Code = "CK0203"
	NoSuchType          Code = "CK0204"
	NotAnObject         Code = "CK0205"
	NoListType          Code = "CK0206"
	AmbiguousKind       Code = "CK0207"
	WrongPackage        Code = "CK0208"

	UnknownSelector   Code = "CK0301"
	DuplicateSelector Code = "CK0302"
	MissingValue      Code = "CK0303"
	UnwantedValue     Code = "CK0304"
	MissingKey        Code = "CK0305"
	NoSelector        Code = "CK0306"
	BadLabelKey       Code = "CK0307"
	BadLabelValue     Code = "CK0308"
	BadObjectName     Code = "CK0309"
	BadNamespace      Code = "CK0310"
	BadFieldPath      Code = "CK0311"
	UnknownField      Code = "CK0312"
	FieldNotText      Code = "CK0313"
	BadFieldValue     Code = "CK0314"
	Contradiction     Code = "CK0315"
	UnsetField        Code = "CK0316"
	BadOperator       Code = "CK0317"
	NeverSelects      Code = "CK0318"
	BadCondition      Code = "CK0319"

	NotTarget          Code = "CK0401"
	UnknownTargetField Code = "CK0402"
	TargetNotText      Code = "CK0403"
	MethodReference    Code = "CK0404"
	UnsetTargetField   Code = "CK0405"
	BadElements        Code = "CK0406"
	BadMapKey          Code = "CK0407"
	BadDefault         Code = "CK0408"

	OwnedElsewhere           Code = "CK0501"
	OwnedClusterScoped       Code = "CK0502"
	NamespaceOfClusterScoped Code = "CK0503"
	NamespaceNeeded          Code = "CK0504"
	NoTargetNamespace        Code = "CK0505"
	NameInAllNamespaces      Code = "CK0506"
	BadOwner                 Code = "CK0507"

	UnusedBind      Code = "CK0601"
	UnusedAlias     Code = "CK0602"
	UnusedState     Code = "CK0603"
	UnlikelyValue   Code = "CK0604"
	ShadowedKind    Code = "CK0605"
	EmptyManager    Code = "CK0606"
	PackageErrors   Code = "CK0607"
	VersionMismatch Code = "CK0608"
	EmptyDocument   Code = "CK0609"
	NeverEmpty      Code = "CK0610"
	RepeatedValue   Code = "CK0611"

	SingleObject   Code = "CK0701"
	AnnotationCost Code = "CK0702"
	MayBeEmpty     Code = "CK0703"
	LeftOut        Code = "CK0704"
)

// An Explanation explains a code, in the manual and in `ctrlkit check --explain`.
type Explanation struct {
	Code     Code
	Severity Severity
	// Title is the mistake in a few words.
	Title string
	// Text explains the rule in one or two sentences.
	Text string
	// Example is the smallest document that has this mistake and no other.
	Example string
}

// Codes returns the explanations of all codes, in their order.
func Codes() []Explanation { return slices.Clone(explanations()) }

// Explain returns the explanation of a code, if there is one.
func Explain(code Code) (Explanation, bool) {
	all := explanations()
	i, ok := slices.BinarySearchFunc(all, code, func(e Explanation, code Code) int { return strings.Compare(string(e.Code), string(code)) })
	if !ok {
		return Explanation{}, false
	}
	return all[i], true
}

// Severity returns the severity of the diagnostics with this code.
func (c Code) Severity() Severity {
	if e, ok := Explain(c); ok {
		return e.Severity
	}
	return Error
}

//go:embed codes.txtar
var codesText []byte

// explanations reads codes.txtar.
var explanations = sync.OnceValue(func() []Explanation {
	var all []Explanation
	for _, f := range txtar.Parse(codesText).Files {
		head, title, _ := strings.Cut(f.Name, ": ")
		code, severity, _ := strings.Cut(head, " ")
		text, example, _ := strings.Cut(string(f.Data), "\n\n")
		e := Explanation{Code: Code(code), Severity: Error, Title: title, Text: text, Example: Unquoted(example)}
		switch severity {
		case Warning.String():
			e.Severity = Warning
		case Note.String():
			e.Severity = Note
		}
		all = append(all, e)
	}
	return all
})

// Unquoted returns the document that a file of an archive stands for: the file itself, or the Go
// string after the word "quoted", for what a text file cannot hold.
func Unquoted(text string) string {
	if quoted, ok := strings.CutPrefix(text, "quoted "); ok {
		if document, err := strconv.Unquote(strings.TrimSpace(quoted)); err == nil {
			return document
		}
	}
	return text
}
