import { member } from '../../lib/json.ts';
import type { Json } from '../../lib/json.ts';
import { PatternSet } from '../patterns/pattern-set.ts';
import type { ArgumentRule, PreparedPolicy } from '../prepare.ts';
import type { ToolRuleInput } from './rule-inputs.ts';
import { deny, notApplicable, passed } from './rule.ts';
import type { Rule, RuleViolation } from './rule.ts';

/**
 * `spec.arguments`: where a pin's tool pattern matches, the argument is required and every value of it must be allowed; an
 * empty list has no value and is refused. Several pins on one argument must all hold. Values are compared as paths, so that a star never crosses a slash and `..` never matches.
 */
export function argumentRule({ argumentRules }: PreparedPolicy): Rule<ToolRuleInput> {
  const pinned = new PatternSet(
    argumentRules.flatMap(({ tool }) => tool.patterns),
    'tool',
  );
  return {
    id: 'arguments',
    check: (request) => {
      if (request.arguments === undefined || !pinned.covers(request.subject)) return undefined;
      for (const pin of argumentRules) {
        if (!pin.tool.covers(request.subject)) continue;
        const violation = checkPin(pin, request.name, request.arguments);
        if (violation !== undefined) return violation;
      }
      return undefined;
    },
    explain: (request) => {
      const pins = argumentRules.filter((pin) => pin.tool.covers(request.subject));
      if (pins.length === 0) return notApplicable('no argument of this tool is pinned');
      if (request.arguments === undefined) return notApplicable('pinned arguments are checked when the tool is called');
      return passed(pins.map((pin) => `${pin.argument} is one of ${pin.allow.describe()}`).join('; '));
    },
  };
}

function checkPin(pin: ArgumentRule, tool: string, input: Json): RuleViolation | undefined {
  const value = member(input, pin.argument);
  if (value === undefined) {
    return deny(`Argument "${pin.argument}" of tool "${tool}" is pinned and required: one of ${pin.allow.describe()}.`);
  }
  const values = Array.isArray(value) ? value : [value];
  if (values.length > 0 && values.every((item) => isAllowed(pin, item))) return undefined;
  return deny(`Argument "${pin.argument}" of tool "${tool}" is pinned to ${pin.allow.describe()}.`);
}

function isAllowed(pin: ArgumentRule, value: Json): boolean {
  if (typeof value === 'string') return pin.allow.has(value);
  if (typeof value === 'number' || typeof value === 'boolean') return pin.allow.has(String(value));
  return false;
}
