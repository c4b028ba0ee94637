import type { Help, HelpConfiguration } from 'commander';
import type { CliIo } from '../io.ts';

/** Width of a text that goes to no terminal. */
const DEFAULT_COLUMNS = 80;
/** A narrower description stands below its term instead of beside it. */
const MIN_DESCRIPTION_COLUMNS = 30;
const ITEM_INDENT = 2;
const DESCRIPTION_INDENT = 6;
const GAP = 2;
const USAGE = 'Usage: ';

/** The layout of the help of every verb: no line is wider than the terminal. */
export function helpLayout(): HelpConfiguration {
  return {
    minWidthToWrap: 1,
    styleUsage(this: Help, usage: string): string {
      return indented(this.boxWrap(usage, widthOf(this) - USAGE.length), USAGE.length);
    },
    formatItem(this: Help, term: string, termWidth: number, description: string): string {
      return formatItem(this, term, termWidth, description);
    },
  };
}

/** The widths of the terminals of standard output and standard error, for the help. */
export function helpWidths(io: CliIo): { getOutHelpWidth: () => number; getErrHelpWidth: () => number } {
  return {
    getOutHelpWidth: () => io.columns?.() ?? DEFAULT_COLUMNS,
    getErrHelpWidth: () => io.errorColumns?.() ?? DEFAULT_COLUMNS,
  };
}

function formatItem(help: Help, term: string, termWidth: number, description: string): string {
  const columns = widthOf(help);
  const indent = ' '.repeat(ITEM_INDENT);
  const beside = columns - ITEM_INDENT - termWidth - GAP;
  if (description !== '' && beside >= MIN_DESCRIPTION_COLUMNS) {
    const text = help.boxWrap(description, beside);
    return `${indent}${term.padEnd(termWidth + GAP)}${indented(text, ITEM_INDENT + termWidth + GAP)}`;
  }
  const name = indented(help.boxWrap(term, columns - DESCRIPTION_INDENT), DESCRIPTION_INDENT);
  if (description === '') return `${indent}${name}`;
  const text = help.boxWrap(description, columns - DESCRIPTION_INDENT);
  return `${indent}${name}\n${' '.repeat(DESCRIPTION_INDENT)}${indented(text, DESCRIPTION_INDENT)}`;
}

function widthOf(help: Help): number {
  return help.helpWidth ?? DEFAULT_COLUMNS;
}

/** The text with every line after the first indented. */
function indented(text: string, indent: number): string {
  return text.replaceAll('\n', `\n${' '.repeat(indent)}`);
}
