import { deny, escalate, notApplicable, passed } from '../rules.ts';
import type { Rule, Violation } from '../rules.ts';
import { isForgeTool } from '../questions.ts';
import type { ToolQuestion } from '../questions.ts';
import type { ToolCategory } from '../types.ts';
import { findCredential } from './credentials.ts';
import { findDestructive } from './destructive.ts';
import { findLeak } from './leaks.ts';
import type { ArgumentText } from './texts.ts';
import { findTraversal } from './traversal.ts';

/** Categories in which a text is a command and not data. */
const COMMANDS: ReadonlySet<ToolCategory> = new Set([
  'terminal',
  'database',
  'version_control',
  'deployment',
  'code_execution',
]);

/**
 * The last rules: they read the arguments. They stand behind everything that would let a call go ahead, so that no approval
 * list skips them. They are heuristics: they take away and never grant. Credentials and paths that climb are denied, what
 * destroys or gives away people's data waits for a person.
 */
export function detectorRules(): Rule<ToolQuestion>[] {
  return [
    detector('detector.credential', always, ({ texts }) => {
      const found = first(texts, ({ name, text }) => findCredential(name, text));
      if (found === undefined) return undefined;
      return deny(`An argument holds ${found}; secrets never pass through a model. Name a connection instead.`);
    }),
    detector('detector.path-traversal', actsItself, ({ category, texts }) => {
      const found = first(texts, ({ name, text }) => findTraversal(category, name, text));
      return found === undefined
        ? undefined
        : deny(`A path among the arguments ${found}; write it plainly, below the workspace.`);
    }),
    detector('detector.destructive', isCommand, ({ texts }) => {
      const found = first(texts, ({ text }) => findDestructive(text));
      return found === undefined ? undefined : escalate(`The call looks destructive (${found}); a person decides.`);
    }),
    detector('detector.data-leak', leaves, ({ texts }) => {
      const found = findLeak(texts);
      return found === undefined ? undefined : escalate(`The call would send ${found} out; a person decides.`);
    }),
  ];
}

function detector(
  id: string,
  applies: (request: ToolQuestion) => boolean,
  scan: (request: ToolQuestion) => Violation | undefined,
): Rule<ToolQuestion> {
  return {
    id,
    check: (request) => (request.arguments === undefined || !applies(request) ? undefined : scan(request)),
    note: (request) => {
      if (request.arguments === undefined) return notApplicable('arguments are read when the tool is called');
      return applies(request) ? passed('nothing found in the arguments') : notApplicable('not for such a tool');
    },
  };
}

function first(texts: readonly ArgumentText[], find: (text: ArgumentText) => string | undefined): string | undefined {
  for (const text of texts) {
    const found = find(text);
    if (found !== undefined) return found;
  }
  return undefined;
}

function always(): boolean {
  return true;
}

/** What a forged tool is given is data, and what forging is given is a draft: both act through other calls, which are decided on their own. */
function actsItself(request: ToolQuestion): boolean {
  return !request.forged && !isForgeTool(request);
}

function isCommand(request: ToolQuestion): boolean {
  return actsItself(request) && COMMANDS.has(request.category);
}

function leaves({ category, action }: ToolQuestion): boolean {
  return category === 'web' || category === 'communication' || action === 'comms:external';
}
