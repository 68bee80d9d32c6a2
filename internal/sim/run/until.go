// Copyright The ctrlkit Authors
// SPDX-License-Identifier: Apache-2.0

package run

import (
	"fmt"
	"path"
	"reflect"
	"strconv"
	"strings"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/jsonpath"
)

// UntilSyntax explains the conditions that ParseCondition reads.
const UntilSyntax = `A condition names objects, and what must be true of at least one of them:

  KIND                       one exists
  KIND/NAME                  it exists; NAME may contain * and ?, and follow a NAMESPACE/
  KIND[/NAME]=WORD           the condition WORD is True, or WORD is the state shown: Complete, Running, Ready ...
  KIND[/NAME]:PATH           the field at this JSONPath is set:   cronjob/hello:status.lastScheduleTime
  KIND[/NAME]:PATH OP VALUE  the comparison is true:              deployment/web:status.readyReplicas >= 2
  ... count OP NUMBER        how many such objects there are (default: one or more):   job=Complete count >= 3

OP is =, ==, !=, >, >=, < or <=. KIND is a kind, plural or short name, with the group (cronjob.batch) if two kinds have
the same name. Put a PATH with spaces or comparisons in braces, as for kubectl: {.status.conditions[0].type}.
A condition with an exact NAME covers any object, all others only the operator's objects and their children.`

// Condition is a parsed condition of --until. It is immutable.
type Condition struct {
	Text string // as given

	kind       string
	kinds      []schema.GroupKind
	namespace  string // a pattern; empty means any
	name       string // a pattern; empty means any
	word       string
	path       *jsonpath.JSONPath
	comparison relation // of the field; empty means that it is set
	value      string
	counting   relation // empty means one or more
	count      int
}

type relation string

// relations, each before its prefixes.
var relations = []relation{"==", "!=", ">=", "<=", "=", ">", "<"}

// SyntaxError describes a mistake in a condition.
type SyntaxError struct {
	Text    string // the condition
	Offset  int    // of the wrong piece, in bytes
	Message string
}

func (e *SyntaxError) Error() string {
	column := utf8.RuneCountInString(e.Text[:e.Offset])
	return fmt.Sprintf("condition %q, column %d: %s\n    %s\n    %s^", e.Text, column+1, e.Message, e.Text, strings.Repeat(" ", column))
}

// ParseCondition parses a condition on objects of these kinds, in the syntax of UntilSyntax. Its
// errors are of type *SyntaxError.
func ParseCondition(text string, kinds []Kind) (*Condition, error) {
	p := &conditionParser{text: text, condition: &Condition{Text: text}}
	if err := p.parse(kinds); err != nil {
		return nil, err
	}
	return p.condition, nil
}

type conditionParser struct {
	text      string
	at        int
	condition *Condition
}

func (p *conditionParser) parse(kinds []Kind) error {
	if err := p.parseObjects(kinds); err != nil {
		return err
	}
	p.spaces()
	switch {
	case p.takes("="):
		p.takes("=")
		p.spaces()
		start := p.at
		p.condition.word = p.while(isWordByte)
		if p.condition.word == "" {
			return p.wrong(start, "expected a condition or state after the =, such as Complete")
		}
	case p.takes(":"):
		if err := p.parseField(); err != nil {
			return err
		}
	}
	p.spaces()
	if p.takes("count") {
		if err := p.parseCount(); err != nil {
			return err
		}
	}
	p.spaces()
	if p.at < len(p.text) {
		return p.wrong(p.at, "unexpected text after the condition")
	}
	return nil
}

func (p *conditionParser) parseObjects(kinds []Kind) error {
	p.spaces()
	c, start := p.condition, p.at
	c.kind = p.while(func(b byte) bool { return isWordByte(b) || b == '.' || b == '-' })
	if c.kind == "" {
		return p.wrong(start, "expected a kind, such as job or cronjob/hello")
	}
	if strings.EqualFold(c.kind, "jsonpath") || strings.EqualFold(c.kind, "condition") {
		return p.wrong(start, "name the objects first: KIND/NAME:PATH or KIND/NAME=CONDITION")
	}
	found := kindsNamed(c.kind, kinds)
	if len(found) == 0 {
		message := fmt.Sprintf("no kind %q is watched", c.kind)
		if near := nearKind(c.kind, kinds); near != "" {
			return p.wrong(start, message+fmt.Sprintf("; did you mean %q?", near))
		}
		return p.wrong(start, message+"; --watch adds kinds")
	}
	for _, k := range found {
		c.kinds = append(c.kinds, k.GroupKind())
	}
	if !p.takes("/") {
		return nil
	}
	start = p.at
	parts := strings.Split(p.while(func(b byte) bool { return isWordByte(b) || strings.IndexByte("-.*?/", b) >= 0 }), "/")
	for _, part := range parts {
		if part == "" {
			return p.wrong(start, "expected a name after the /")
		}
	}
	switch len(parts) {
	case 1:
		c.name = parts[0]
	case 2:
		c.namespace, c.name = parts[0], parts[1]
	default:
		return p.wrong(start, "too many parts; want KIND/NAME or KIND/NAMESPACE/NAME")
	}
	return nil
}

func (p *conditionParser) parseField() error {
	start := p.at
	expression, err := p.parsePath()
	if err != nil {
		return err
	}
	parsed := jsonpath.New("until").AllowMissingKeys(true)
	if err := parsed.Parse(expression); err != nil {
		return p.wrong(start, fmt.Sprintf("invalid JSONPath: %v", err))
	}
	p.condition.path = parsed

	p.spaces()
	op, ok := p.takeRelation()
	if !ok {
		return nil
	}
	p.spaces()
	start = p.at
	value, err := p.parseValue()
	if err != nil {
		return err
	}
	if _, isNumber := number(value); !isNumber && strings.ContainsAny(string(op), "<>") {
		return p.wrong(start, fmt.Sprintf("%s compares numbers, and %q is not a number", op, value))
	}
	p.condition.comparison, p.condition.value = op, value
	return nil
}

// parsePath reads a JSONPath, which ends at a space or an operator outside of brackets and quotes,
// and returns it in braces.
func (p *conditionParser) parsePath() (string, error) {
	start, depth, quote := p.at, 0, byte(0)
scan:
	for ; p.at < len(p.text); p.at++ {
		b := p.text[p.at]
		switch {
		case quote != 0:
			if b == quote {
				quote = 0
			}
		case depth > 0 && (b == '"' || b == '\''):
			quote = b
		case strings.IndexByte("{[(", b) >= 0:
			depth++
		case strings.IndexByte("}])", b) >= 0:
			depth--
		case depth == 0 && strings.IndexByte(" =!<>", b) >= 0:
			break scan
		}
	}
	expression := p.text[start:p.at]
	switch {
	case expression == "":
		return "", p.wrong(start, "expected a field after the colon, such as status.phase")
	case quote != 0:
		return "", p.wrong(start, fmt.Sprintf("missing closing %c in this field", quote))
	case depth != 0:
		return "", p.wrong(start, "unbalanced brackets in this field")
	case strings.HasPrefix(expression, "{"):
		return expression, nil
	default:
		return "{." + strings.TrimPrefix(expression, ".") + "}", nil
	}
}

func (p *conditionParser) parseValue() (string, error) {
	start := p.at
	if p.at < len(p.text) && (p.text[p.at] == '"' || p.text[p.at] == '\'') {
		end := strings.IndexByte(p.text[p.at+1:], p.text[p.at])
		if end < 0 {
			return "", p.wrong(start, "missing closing quote")
		}
		p.at += end + 2
		return p.text[start+1 : p.at-1], nil
	}
	value := p.while(func(b byte) bool { return b != ' ' && b != '\t' })
	if value == "" {
		return "", p.wrong(start, "expected a value")
	}
	return value, nil
}

func (p *conditionParser) parseCount() error {
	p.spaces()
	op, ok := p.takeRelation()
	if !ok {
		return p.wrong(p.at, "expected a comparison after count, such as >= 3")
	}
	p.spaces()
	start := p.at
	digits := p.while(func(b byte) bool { return b >= '0' && b <= '9' })
	count, err := strconv.Atoi(digits)
	if err != nil {
		return p.wrong(start, "expected a number")
	}
	p.condition.counting, p.condition.count = op, count
	return nil
}

func (p *conditionParser) takeRelation() (relation, bool) {
	for _, op := range relations {
		if p.takes(string(op)) {
			return op, true
		}
	}
	return "", false
}

func (p *conditionParser) takes(prefix string) bool {
	if !strings.HasPrefix(p.text[p.at:], prefix) {
		return false
	}
	p.at += len(prefix)
	return true
}

func (p *conditionParser) while(accept func(byte) bool) string {
	start := p.at
	for p.at < len(p.text) && accept(p.text[p.at]) {
		p.at++
	}
	return p.text[start:p.at]
}

func (p *conditionParser) spaces() { p.while(func(b byte) bool { return b == ' ' || b == '\t' }) }

func (p *conditionParser) wrong(offset int, message string) error {
	return &SyntaxError{Text: p.text, Offset: offset, Message: message}
}

func isWordByte(b byte) bool {
	return b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b >= '0' && b <= '9' || b == '_'
}

// Holds reports whether the condition is true in w. If not, missing describes what is true instead.
func (c *Condition) Holds(w *World) (holds bool, missing string) {
	var named, fulfilled int
	var example *Object
	for uid, obj := range w.objects {
		if !c.isAbout(obj, w.belongs[uid]) {
			continue
		}
		named++
		if c.fulfilledBy(obj) {
			fulfilled++
		} else if example == nil || obj.FullName() < example.FullName() {
			example = obj
		}
	}
	if c.counting == "" {
		holds = fulfilled > 0
	} else {
		holds = compare(float64(fulfilled), c.counting, float64(c.count))
	}
	switch {
	case holds:
		return true, ""
	case named == 0:
		return false, "no such object"
	case example == nil:
		return false, fmt.Sprintf("there are %d", fulfilled)
	default:
		missing = fmt.Sprintf("%d of %d; %s %s", fulfilled, named, example.Kind.Kind, example.FullName())
		if state := example.State.String(); state != "" {
			missing += " is " + state
		}
		return false, missing
	}
}

// isAbout reports whether the condition covers obj.
func (c *Condition) isAbout(obj *Object, belongs bool) bool {
	ofKind := false
	for _, kind := range c.kinds {
		ofKind = ofKind || kind == obj.Kind
	}
	exact := c.name != "" && !strings.ContainsAny(c.namespace+c.name, "*?")
	return ofKind && (belongs || exact) && matches(c.namespace, obj.Namespace) && matches(c.name, obj.Name)
}

// matches reports whether text matches a pattern, which has no brackets or backslashes. An empty
// pattern matches all.
func matches(pattern, text string) bool {
	if pattern == "" {
		return true
	}
	ok, err := path.Match(pattern, text)
	return ok && err == nil
}

func (c *Condition) fulfilledBy(obj *Object) bool {
	switch {
	case c.word != "":
		for name, condition := range conditionsOf(obj.Content) {
			if strings.EqualFold(name, c.word) && condition.status == "True" {
				return true
			}
		}
		return strings.EqualFold(obj.State.Word, c.word)
	case c.path != nil:
		return c.fieldFits(obj)
	default:
		return true
	}
}

// fieldFits reports whether the comparison is true for one of the values that the path finds in
// obj.
func (c *Condition) fieldFits(obj *Object) bool {
	results, err := c.path.FindResults(obj.Content)
	if err != nil {
		return false
	}
	for _, list := range results {
		for _, value := range list {
			text, isSet := valueText(value)
			if isSet && (c.comparison == "" || compareTexts(text, c.comparison, c.value)) {
				return true
			}
		}
	}
	return false
}

// valueText returns the text of a value, and whether it is set.
func valueText(value reflect.Value) (string, bool) {
	for value.Kind() == reflect.Interface {
		value = value.Elem()
	}
	if !value.IsValid() {
		return "", false
	}
	switch value.Kind() {
	case reflect.Map, reflect.Slice:
		return fmt.Sprint(value.Interface()), value.Len() > 0
	default:
		text := fmt.Sprint(value.Interface())
		return text, text != ""
	}
}

func compareTexts(have string, op relation, want string) bool {
	a, isNumber := number(have)
	b, alsoNumber := number(want)
	if isNumber && alsoNumber {
		return compare(a, op, b)
	}
	switch op {
	case "=", "==":
		return have == want
	case "!=":
		return have != want
	default:
		return false
	}
}

func number(text string) (float64, bool) {
	n, err := strconv.ParseFloat(text, 64)
	return n, err == nil
}

func compare(a float64, op relation, b float64) bool {
	switch op {
	case "=", "==":
		return a == b
	case "!=":
		return a != b
	case ">":
		return a > b
	case ">=":
		return a >= b
	case "<":
		return a < b
	case "<=":
		return a <= b
	default:
		return false
	}
}
