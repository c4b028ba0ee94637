import { describeLimit } from '../constraints/constrained-level.ts';
import { includes, newSearchBudget } from '../patterns/pattern-containment.ts';
import { PATTERN_RULES } from '../patterns/pattern-rules.ts';
import { compilePattern } from '../patterns/pattern.ts';
import type { PatternSet } from '../patterns/pattern-set.ts';
import type { PreparedPolicy } from '../prepare.ts';
import { isInScope, resolvePath } from './access.ts';
import { allowed, deny, notApplicable, passed } from './rule.ts';
import type { RequestOf, Rule, RuleViolation } from './rule.ts';
import { taintedRule } from './common.ts';

type ForgeRuleInput = RequestOf<'Forge'>;

/** May the agent forge a tool of this mode with these requirements? Checks the limits of agent, policy and level, each as its own rule. */
export function forgeRules(prepared: PreparedPolicy): Rule<ForgeRuleInput>[] {
  const { spec } = prepared.snapshot.agent;
  return [
    taintedRule<ForgeRuleInput>(prepared, 'forge'),
    {
      id: 'forge.enabled',
      check: () =>
        spec.forge?.enabled === true
          ? undefined
          : deny(`Agent "${prepared.snapshot.agent.name}" may not forge: spec.forge.enabled is not set.`),
      explain: () => allowed('spec.forge.enabled is set'),
    },
    ...modeRules(prepared),
    ...apiRules(prepared),
    domainRule(prepared),
    pathRule(prepared),
  ];
}

function modeRules({ snapshot, level }: PreparedPolicy): Rule<ForgeRuleInput>[] {
  const modes = snapshot.agent.spec.forge?.modes ?? ['Compose'];
  return [
    {
      id: 'forge.modes',
      check: ({ mode }) =>
        modes.includes(mode)
          ? undefined
          : deny(`Mode ${mode} is not one of spec.forge.modes: ${modes.join(', ') || 'none'}.`),
      explain: ({ mode }) => passed(`spec.forge.modes names ${mode}`),
    },
    {
      id: 'level.forge',
      check: ({ mode, apis }) => {
        if (!level.forgeModes.includes(mode)) {
          return deny(
            `Level ${level.name} forges ${level.forgeModes.join(', ') || 'nothing'}, not ${mode}; level restricted forges Sandbox.`,
          );
        }
        return apis.length > 0 && !level.forgeApis
          ? deny(
              `Level ${level.name} forges only pure tools, and this one requests ${apis.join(', ')}; level standard may request it.`,
            )
          : undefined;
      },
      explain: () =>
        passed(
          `level ${level.name} forges ${level.forgeModes.join(', ')}${level.forgeApis ? '' : ' without host functions'}`,
        ),
    },
  ];
}

function apiRules({ snapshot, level }: PreparedPolicy): Rule<ForgeRuleInput>[] {
  const agentApis = snapshot.agent.spec.forge?.apis ?? [];
  const policyApis = snapshot.policy.spec.forge?.apis ?? [];
  const rule = (id: string, field: string, list: readonly string[]): Rule<ForgeRuleInput> => ({
    id,
    check: ({ apis }) => {
      const disallowed = apis.filter((api) => !list.includes(api));
      return disallowed.length === 0
        ? undefined
        : deny(`The tool requests ${disallowed.join(', ')}; ${field} allows ${list.join(', ') || 'nothing'}.`);
    },
    explain: ({ apis }) =>
      apis.length === 0
        ? notApplicable('the tool requests no host function')
        : passed(`${field} allows ${list.join(', ')}`),
  });
  return [
    rule('forge.apis', 'spec.forge.apis', agentApis),
    rule('policy.forge.apis', `forge.apis of TrustPolicy "${snapshot.policy.name}"`, policyApis),
    {
      id: 'constraint.network',
      check: ({ apis }) =>
        apis.includes('fetch') && level.constraints.network === 'None'
          ? deny(`The tool requests fetch, and ${level.limits.network.by} does not allow the network.`)
          : undefined,
      explain: ({ apis }) =>
        apis.includes('fetch') ? passed(describeLimit(level, 'network')) : notApplicable('no fetch'),
    },
  ];
}

/** Refuses a tool that declares a host its agent may not connect to: its calls would fail later. */
function domainRule(prepared: PreparedPolicy): Rule<ForgeRuleInput> {
  const lists: [string, PatternSet][] = [
    ['forge.domains', prepared.forgeDomains],
    ['egress.allow', prepared.egress],
    ['grants.network', prepared.network],
  ];
  return {
    id: 'policy.forge.domains',
    check: ({ domains, apis }) => {
      if (domains.length > 0 && !apis.includes('fetch')) {
        return deny('The tool names domains without fetch; leave requires.domains empty or request fetch.');
      }
      // One budget, because the author of the tool chooses the number of domains.
      const budget = newSearchBudget();
      for (const domain of domains) {
        const error = PATTERN_RULES.patternError(domain, 'host');
        if (error !== undefined) return deny(`Domain "${domain}" is not a host pattern: ${error}.`);
        const pattern = compilePattern(domain, 'host');
        for (const [field, set] of lists) {
          if (!includes(set.patterns, pattern, budget)) {
            return deny(`Domain "${domain}" is not within ${field}, which allows ${set.describe()}.`);
          }
        }
      }
      return undefined;
    },
    explain: ({ domains }) =>
      domains.length === 0
        ? notApplicable('the tool names no domain')
        : passed(`within ${lists.map(([field]) => field).join(', ')}`),
  };
}

function pathRule(prepared: PreparedPolicy): Rule<ForgeRuleInput> {
  const { level } = prepared;
  return {
    id: 'constraint.files',
    check: ({ paths, apis }) => {
      if (paths.length > 0 && !apis.includes('fs.readFile')) {
        return deny('The tool names paths without fs.readFile; leave requires.paths empty or request fs.readFile.');
      }
      return paths.map((path) => pathViolation(prepared, path)).find((violation) => violation !== undefined);
    },
    explain: ({ paths }) =>
      paths.length === 0
        ? notApplicable('the tool names no path')
        : passed(`within file scope ${level.constraints.files}: ${describeLimit(level, 'files')}`),
  };
}

/** The literal segments before the first wildcard must be in scope; a wildcard only matches paths below them. */
function pathViolation(prepared: PreparedPolicy, path: string): RuleViolation | undefined {
  const resolved = resolvePath(prepared, path);
  if (typeof resolved === 'string') return deny(`A path of the tool ${resolved}; write it plainly.`);
  const firstWild = resolved.findIndex((segment) => segment.includes('*'));
  const fixed = firstWild < 0 ? resolved : resolved.slice(0, firstWild);
  return isInScope(prepared, fixed)
    ? undefined
    : deny(
        `A path of the tool is outside the ${prepared.level.constraints.files.toLowerCase()}, which is all that ${prepared.level.limits.files.by} allows; use one below the workspace.`,
      );
}
