// Renders the templates of the chart with the template engine that Helm uses, where there is no helm. It has the
// functions that the chart uses and no others: a template that calls another function fails. Standard input is JSON;
// files are JSON documents, which are YAML as well.
package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"reflect"
	"sort"
	"strconv"
	"strings"
	"text/template"
)

type files map[string]string

func (f files) Get(name string) string { return f[name] }

type input struct {
	Templates map[string]string
	Files     files
	Values    map[string]any
	Chart     map[string]any
	Release   map[string]any
}

func toJson(value any) (string, error) {
	text, err := json.Marshal(value)
	return string(text), err
}

func fromJson(text string) (map[string]any, error) {
	value := map[string]any{}
	return value, json.Unmarshal([]byte(text), &value)
}

func toInt(value any) (int, error) {
	switch number := value.(type) {
	case int:
		return number, nil
	case float64:
		return int(number), nil
	}
	return 0, fmt.Errorf("%v is not a number", value)
}

func toDict(values ...any) map[string]any {
	dict := map[string]any{}
	for i := 0; i+1 < len(values); i += 2 {
		dict[values[i].(string)] = values[i+1]
	}
	return dict
}

func main() {
	var in input
	if err := json.NewDecoder(os.Stdin).Decode(&in); err != nil {
		fail(err)
	}
	root := template.New("chart").Option("missingkey=zero")
	root.Funcs(template.FuncMap{
		"toYaml":     toJson,
		"fromYaml":   fromJson,
		"toString":   func(value any) string { return fmt.Sprint(value) },
		"int":        toInt,
		"float64":    func(text string) (float64, error) { return strconv.ParseFloat(text, 64) },
		"kindIs":     func(kind string, value any) bool { return reflect.ValueOf(value).Kind().String() == kind },
		"dict":       toDict,
		"list":       func(values ...any) []any { return values },
		"contains":   func(part, text string) bool { return strings.Contains(text, part) },
		"hasPrefix":  func(part, text string) bool { return strings.HasPrefix(text, part) },
		"trimPrefix": func(part, text string) string { return strings.TrimPrefix(text, part) },
		"splitList":  func(by, text string) []string { return strings.Split(text, by) },
		"nindent":    func(n int, text string) string { return "\n" + strings.Repeat(" ", n) + text },
		"fail":       func(text string) (string, error) { return "", errors.New(text) },
		"sha256sum":  func(text string) string { return fmt.Sprintf("%x", sha256.Sum256([]byte(text))) },
		"set": func(dict map[string]any, key string, value any) map[string]any {
			dict[key] = value
			return dict
		},
		"unset": func(dict map[string]any, key string) map[string]any {
			delete(dict, key)
			return dict
		},
		"default": func(fallback, value any) any {
			if value == nil || reflect.ValueOf(value).IsZero() {
				return fallback
			}
			return value
		},
		"has": func(wanted any, values []any) bool {
			for _, value := range values {
				if value == wanted {
					return true
				}
			}
			return false
		},
		"splitn": func(by string, n int, text string) map[string]any {
			parts := map[string]any{}
			for i, part := range strings.SplitN(text, by, n) {
				parts[fmt.Sprintf("_%d", i)] = part
			}
			return parts
		},
		"include": func(name string, data any) (string, error) {
			var out bytes.Buffer
			err := root.ExecuteTemplate(&out, name, data)
			return out.String(), err
		},
	})
	names := []string{}
	for name, text := range in.Templates {
		if _, err := root.New(name).Parse(text); err != nil {
			fail(err)
		}
		names = append(names, name)
	}
	sort.Strings(names)
	data := map[string]any{"Values": in.Values, "Files": in.Files, "Chart": in.Chart, "Release": in.Release}
	rendered := map[string]string{}
	for _, name := range names {
		var out bytes.Buffer
		if err := root.ExecuteTemplate(&out, name, data); err != nil {
			fail(err)
		}
		rendered[name] = out.String()
	}
	if err := json.NewEncoder(os.Stdout).Encode(rendered); err != nil {
		fail(err)
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}
