package main

import (
	"fmt"
	"strings"
)

// bashCompletion is the script for bash 3.2 and later.
func bashCompletion(list []completable) string {
	var b strings.Builder
	var names []string
	for _, c := range list {
		names = append(names, c.name)
	}
	b.WriteString(bashHead)
	fmt.Fprintf(&b, "  if ((COMP_CWORD == 1)); then\n    _prp_add -W '%s'\n    return\n  fi\n", strings.Join(names, " "))
	b.WriteString("  case ${COMP_WORDS[1]} in\n")
	for _, c := range list {
		fmt.Fprintf(&b, "  %s)\n    case $prev in\n", c.name)
		bashValues(&b, &c, "_prp_files -f", (*completableFlag).takesFile)
		bashValues(&b, &c, "_prp_files -d", (*completableFlag).takesDir)
		bashValues(&b, &c, ":", (*completableFlag).isText)
		for i := range c.flags {
			if words := c.flags[i].choices(); words != nil {
				fmt.Fprintf(&b, "    --%s) _prp_add -W '%s' ;;\n", c.flags[i].name, strings.Join(words, " "))
			}
		}
		flags := strings.Join(c.flagsWhere(func(*completableFlag) bool { return true }), " ")
		fmt.Fprintf(&b, "    *)\n      if [[ $cur == -* ]]; then\n        _prp_add -W '%s'\n      else\n", flags)
		fmt.Fprintf(&b, "        _prp_add -W '%s'\n", strings.Join(c.words, " "))
		switch c.files {
		case "":
		case anyFile:
			b.WriteString("        _prp_files -f\n")
		default:
			fmt.Fprintf(&b, "        _prp_files -f -X '!%s'\n        _prp_files -d\n", c.files)
		}
		b.WriteString("      fi\n      ;;\n    esac\n    ;;\n")
	}
	b.WriteString("  esac\n}\n\ncomplete -F _prp prp\n")
	return b.String()
}

// bashValues completes the values of the flags that fit.
func bashValues(b *strings.Builder, c *completable, how string, fits func(*completableFlag) bool) {
	if flags := c.flagsWhere(fits); len(flags) > 0 {
		fmt.Fprintf(b, "    %s) %s ;;\n", strings.Join(flags, " | "), how)
	}
}

const bashHead = `# bash completion for prp, made by: prp completion bash

# _prp_add adds what compgen finds.
_prp_add() {
  local word
  while IFS= read -r word; do
    COMPREPLY+=("$word")
  done < <(compgen "$@" -- "$cur")
}

# _prp_files adds names of files, which bash then quotes.
_prp_files() {
  compopt -o filenames 2>/dev/null
  _prp_add "$@"
}

_prp() {
  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]}
  COMPREPLY=()
  # --flag=value comes as three words.
  if [[ $cur == = ]]; then
    cur=
  elif [[ $prev == = ]]; then
    prev=${COMP_WORDS[COMP_CWORD-2]}
  fi
`

// zshCompletion is the script for zsh, to be sourced or to be a file of fpath.
func zshCompletion(list []completable) string {
	var b strings.Builder
	b.WriteString("#compdef prp\n# zsh completion for prp, made by: prp completion zsh\n\n_prp() {\n  local -a commands\n  commands=(\n")
	for _, c := range list {
		fmt.Fprintf(&b, "    %s\n", quoted(c.name+":"+c.short))
	}
	b.WriteString("  )\n  if ((CURRENT == 2)); then\n    _describe 'command' commands\n    return\n  fi\n" +
		"  local command=$words[2]\n  shift words\n  ((CURRENT--))\n  case $command in\n")
	for _, c := range list {
		fmt.Fprintf(&b, "  %s)\n    _arguments", c.name)
		for i := range c.flags {
			fmt.Fprintf(&b, " \\\n      %s", zshFlag(&c.flags[i]))
		}
		if action := zshOperand(&c); action != "" {
			fmt.Fprintf(&b, " \\\n      %s", action)
		}
		b.WriteString("\n    ;;\n")
	}
	b.WriteString("  esac\n}\n\nif [[ $funcstack[1] == _prp ]]; then\n  _prp \"$@\"\nelse\n  compdef _prp prp\nfi\n")
	return b.String()
}

// zshFlag is a flag as _arguments reads it.
func zshFlag(f *completableFlag) string {
	escape := strings.NewReplacer("[", "(", "]", ")", ":", ";").Replace
	text := "*--" + f.name + "[" + escape(f.usage) + "]"
	switch {
	case f.value == "":
	case f.takesFile():
		text += ":" + escape(f.value) + ":_files"
	case f.takesDir():
		text += ":" + escape(f.value) + ":_files -/"
	case f.choices() != nil:
		text += ":" + f.name + ":(" + strings.Join(f.choices(), " ") + ")"
	default:
		text += ":" + escape(f.value) + ": "
	}
	return quoted(text)
}

// zshOperand is the positional arguments as _arguments reads them.
func zshOperand(c *completable) string {
	var actions []string
	if len(c.words) > 0 {
		actions = append(actions, "compadd -- "+strings.Join(c.words, " "))
	}
	if c.files != "" {
		actions = append(actions, `_files -g "`+c.files+`"`)
	}
	if len(actions) == 0 {
		return ""
	}
	return "'*: :{ " + strings.Join(actions, "; ") + " }'"
}

// fishCompletion is the script for fish 3 and later.
func fishCompletion(list []completable) string {
	var b strings.Builder
	b.WriteString(fishHead)
	for _, c := range list {
		fmt.Fprintf(&b, "\ncomplete -c prp -n __prp_first -a %s -d %s\n", c.name, quoted(c.short))
		here := fmt.Sprintf("complete -c prp -n '__prp_after %s'", c.name)
		for i := range c.flags {
			f := &c.flags[i]
			fmt.Fprintf(&b, "%s -l %s -d %s%s\n", here, f.name, quoted(f.usage), fishValue(f))
		}
		if len(c.words) > 0 {
			fmt.Fprintf(&b, "%s -a '%s'\n", here, strings.Join(c.words, " "))
		}
		switch c.files {
		case "":
		case anyFile:
			fmt.Fprintf(&b, "%s -F\n", here)
		default:
			fmt.Fprintf(&b, "%s -k -a '(__fish_complete_suffix %s)'\n", here, strings.TrimPrefix(c.files, "*"))
		}
	}
	return b.String()
}

func fishValue(f *completableFlag) string {
	switch {
	case f.value == "":
		return ""
	case f.takesFile():
		return " -r -F"
	case f.takesDir():
		return " -x -a '(__fish_complete_directories)'"
	case f.choices() != nil:
		return " -x -a '" + strings.Join(f.choices(), " ") + "'"
	}
	return " -x"
}

const fishHead = `# fish completion for prp, made by: prp completion fish

function __prp_first
    test (count (commandline -opc)) -eq 1
end

function __prp_after
    set -l words (commandline -opc)
    test (count $words) -gt 1; and test $words[2] = $argv[1]
end

complete -c prp -f
`
