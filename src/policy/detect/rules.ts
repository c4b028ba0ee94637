import { member } from '../../lib/json.ts';
import { deny, escalate, notApplicable, passed } from '../rules/rule.ts';
import type { Rule, RuleViolation } from '../rules/rule.ts';
import { isForgeTool, isIsolatedCode } from '../rules/rule-inputs.ts';
import type { ToolRuleInput } from '../rules/rule-inputs.ts';
import type { ToolCategory } from '../types.ts';
import { findCredential } from './credentials.ts';
import { findDestructive } from './destructive.ts';
import { findLeak } from './leaks.ts';
import { type ArgumentText, splitCommandLines } from './texts.ts';
import { findTraversal } from './traversal.ts';

/** Tool categories whose arguments are commands and not data. */
const COMMAND_CATEGORIES: ReadonlySet<ToolCategory> = new Set([
  'terminal',
  'database',
  'version_control',
  'deployment',
  'code_execution',
]);

/**
 * Rules that scan the arguments. They run last, after every rule that can allow a call, so that no approval list skips them. They
 * are heuristics: they restrict and never grant. Credentials and path traversal are denied; destructive commands and personal data
 * that would leave the system need an approver.
 */
export function detectorRules(): Rule<ToolRuleInput>[] {
  return [
    // A tool as a draft is checked by the forge itself, which knows source from test data.
    detector('detector.credential', isNoDraft, ({ texts }) => {
      const found = first(texts, ({ name, text }) => findCredential(name, text));
      if (found === undefined) return undefined;
      return deny(
        `An argument contains ${found}; secrets never pass through a model. Leave it out, or leave this step to a user.`,
      );
    }),
    detector('detector.path-traversal', hasOwnEffect, ({ category, texts }) => {
      const found = first(texts, ({ name, text }) => findTraversal(category, name, text));
      return found === undefined
        ? undefined
        : deny(`A path among the arguments ${found}; write it plainly, below the workspace.`);
    }),
    detector('detector.destructive', isCommand, ({ texts, arguments: input }) => {
      const lines = splitCommandLines(input ?? null).map((text) => ({ name: '', text }));
      const found = first([...texts, ...lines], ({ text }) => findDestructive(text));
      return found === undefined ? undefined : escalate(`The call looks destructive (${found}); an approver decides.`);
    }),
    detector('detector.destructive', isDeletion, ({ name, arguments: input }) =>
      member(input, 'recursive') === true && member(input, 'dryRun') !== true
        ? escalate(`Tool "${name}" would delete a folder with everything in it; an approver decides.`)
        : undefined,
    ),
    detector('detector.data-leak', sendsDataOut, ({ texts }) => {
      const found = findLeak(texts);
      return found === undefined ? undefined : escalate(`The call would send ${found} out; an approver decides.`);
    }),
  ];
}

function detector(
  id: string,
  applies: (request: ToolRuleInput) => boolean,
  scan: (request: ToolRuleInput) => RuleViolation | undefined,
): Rule<ToolRuleInput> {
  return {
    id,
    check: (request) => (request.arguments === undefined || !applies(request) ? undefined : scan(request)),
    explain: (request) => {
      if (request.arguments === undefined) return notApplicable('arguments are read when the tool is called');
      return applies(request) ? passed('nothing found in the arguments') : notApplicable('not for this kind of tool');
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

function isNoDraft(request: ToolRuleInput): boolean {
  return !isForgeTool(request);
}

/** False for a forged tool, forge_tool and code_run: their arguments are data or a draft; their effects are other calls, each with its own decision. */
function hasOwnEffect(request: ToolRuleInput): boolean {
  return !request.forged && !isForgeTool(request) && !isIsolatedCode(request);
}

function isCommand(request: ToolRuleInput): boolean {
  return hasOwnEffect(request) && COMMAND_CATEGORIES.has(request.category);
}

function isDeletion(request: ToolRuleInput): boolean {
  return hasOwnEffect(request) && request.category === 'file_system' && request.does.all.includes('code:delete');
}

function sendsDataOut({ category, does }: ToolRuleInput): boolean {
  const isSent = does.all.includes('comms:external') || does.all.includes('vcs:push');
  return category === 'web' || category === 'communication' || isSent;
}
