import {
  ACTION_TYPES,
  builtInRisk,
  DEFAULT_BASE_ACTION,
  DEFAULT_CUSTOM_RISK,
  isActionType,
  RISKS,
} from '../../api/v1alpha1/actions.ts';
import type { TrustPolicySpec } from '../../api/v1alpha1/trustpolicy.ts';
import { type PatternSet, patternSet } from '../patterns/pattern-set.ts';
import type { Subject } from '../patterns/pattern-subjects.ts';
import type { ActionType, Risk } from '../types.ts';

/** A custom action type of the policy. */
interface CustomAction {
  name: ActionType;
  /** The built-in action whose rules apply too. */
  base: ActionType;
  risk: Risk;
  /** The tools that perform it beside their own action. */
  tools: PatternSet;
}

export type ActionRegistry = ReadonlyMap<ActionType, CustomAction>;

/** What a tool does, for the rules. */
export interface ToolActions {
  /** Its own action, and the custom ones that the policy gives it. */
  named: readonly ActionType[];
  /** `named` and the bases of custom actions: a rule about any of them is a rule about the tool. */
  all: readonly ActionType[];
  /** The built-in action that the own one is, or is based on. Undefined when the policy does not register it. */
  own: ActionType | undefined;
  /** The highest one. */
  risk: Risk;
}

/** Throws TEMPER_PATTERN_INVALID. */
export function actionRegistry({ actions = [] }: Pick<TrustPolicySpec, 'actions'>): ActionRegistry {
  return new Map(
    actions.map(({ name, base = DEFAULT_BASE_ACTION, risk = DEFAULT_CUSTOM_RISK, tools }) => [
      name,
      { name, base, risk: highest([risk, builtInRisk(base) ?? 'critical']), tools: patternSet(tools, 'tool') },
    ]),
  );
}

export function actionsOfTool(registry: ActionRegistry, action: ActionType, tool: Subject | undefined): ToolActions {
  if (registry.size === 0) return builtInOnly(action);
  const given = [...registry.values()].filter(({ name, tools }) => name !== action && tools.covers(tool));
  const own = isActionType(action) ? action : registry.get(action)?.base;
  const custom = [registry.get(action), ...given].filter((one) => one !== undefined);
  const named = [action, ...given.map(({ name }) => name)];
  return {
    named,
    all: [...new Set([...named, ...custom.map(({ base }) => base)])],
    own,
    risk: highest([...custom.map(({ risk }) => risk), ...(isActionType(action) ? [riskOfBuiltIn(action)] : [])]),
  };
}

/** Most policies have no custom actions, and every call is decided about. */
const BUILT_IN: ReadonlyMap<ActionType, ToolActions> = new Map(
  ACTION_TYPES.map((action) => [action, { named: [action], all: [action], own: action, risk: riskOfBuiltIn(action) }]),
);

function builtInOnly(action: ActionType): ToolActions {
  return BUILT_IN.get(action) ?? { named: [action], all: [action], own: undefined, risk: riskOfBuiltIn(action) };
}

function riskOfBuiltIn(action: ActionType): Risk {
  return builtInRisk(action) ?? 'high';
}

/** Of nothing, the risk of what is not known. */
function highest(risks: readonly Risk[]): Risk {
  if (risks.length === 0) return 'high';
  return RISKS[Math.max(...risks.map((risk) => RISKS.indexOf(risk)))] ?? 'critical';
}
