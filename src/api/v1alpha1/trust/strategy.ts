import { Type, type Static } from 'typebox';
import { TOOL_CATEGORIES } from '../actions.ts';
import { Duration, LevelName, closed, count, setOf } from '../common.ts';

/** Records of tasks that are kept per agent. No rule can ask for more. */
export const MAX_TASK_RECORDS = 500;

/** What the rules use for fields that the policy does not set. */
export const STRATEGY_DEFAULTS = {
  minTasks: 10,
  minRatings: 3,
  weights: { quality: 30, completion: 25, reliability: 25, experience: 20 },
  thresholds: { restricted: 40, standard: 60, elevated: 80 },
  coolDown: '24h',
  maxErrorPercent: 15,
  maxHarmPercent: 20,
} as const;

const percent = (description: string, standard: number) => count(0, 100, description, standard);

const Weighted = Type.Object(
  {
    weights: Type.Optional(
      Type.Object(
        {
          quality: Type.Optional(percent('Weight of the mean rating by users.', STRATEGY_DEFAULTS.weights.quality)),
          completion: Type.Optional(
            percent('Weight of the share of tasks that were completed.', STRATEGY_DEFAULTS.weights.completion),
          ),
          reliability: Type.Optional(
            percent('Weight of the share of deliveries that completed a task.', STRATEGY_DEFAULTS.weights.reliability),
          ),
          experience: Type.Optional(
            percent('Weight of the number of completed tasks, up to 100.', STRATEGY_DEFAULTS.weights.experience),
          ),
        },
        { ...closed, description: 'The weights of the terms of the score, in percent. Their sum must be 100.' },
      ),
    ),
    thresholds: Type.Optional(
      Type.Object(
        {
          restricted: Type.Optional(
            percent('Score for level restricted, in percent.', STRATEGY_DEFAULTS.thresholds.restricted),
          ),
          standard: Type.Optional(
            percent('Score for level standard, in percent.', STRATEGY_DEFAULTS.thresholds.standard),
          ),
          elevated: Type.Optional(
            percent(
              'Score with which an approver is asked about level elevated, in percent.',
              STRATEGY_DEFAULTS.thresholds.elevated,
            ),
          ),
        },
        { ...closed, description: 'The scores that the levels require.' },
      ),
    ),
  },
  { ...closed, description: 'The score of type `Weighted`.' },
);

const requirements = {
  minTasks: Type.Optional(count(1, MAX_TASK_RECORDS, 'Minimum number of completed tasks.')),
  minQuality: Type.Optional(count(0, 10, 'Minimum mean rating by users, from 0 to 10.')),
  activeFor: Type.Optional({ ...Duration, description: 'Minimum age of the agent.' }),
  cleanFor: Type.Optional({ ...Duration, description: 'Minimum time since the last failure.' }),
};

const Milestone = Type.Object(
  {
    ...requirements,
    levels: Type.Optional(
      Type.Array(
        Type.Object(
          {
            level: Type.Enum(['restricted', 'standard', 'elevated'], { description: 'The level to be reached.' }),
            ...requirements,
          },
          closed,
        ),
        {
          maxItems: 3,
          'x-kubernetes-list-type': 'map',
          'x-kubernetes-list-map-keys': ['level'],
          description: 'Requirements of single levels, which replace those for every level field by field.',
        },
      ),
    ),
  },
  { ...closed, description: 'The requirements for a higher level. Only for type `Milestone`.' },
);

const CategoryRule = Type.Object(
  {
    category: Type.Enum([...TOOL_CATEGORIES], { description: 'A tool category.' }),
    initial: Type.Optional({
      ...LevelName,
      description: 'The level of a new agent in this category. Must not be elevated. Defaults to `level.initial`.',
    }),
    minTasks: Type.Optional(count(1, MAX_TASK_RECORDS, 'Minimum number of completed tasks of the category.')),
    minQuality: Type.Optional(count(0, 10, 'Minimum mean rating of the tasks of the category, from 0 to 10.')),
  },
  closed,
);

export const Strategy = Type.Object(
  {
    type: Type.Enum(['Disabled', 'Weighted', 'PerCategory', 'Milestone'], {
      description:
        'How an agent earns a higher level. `Disabled`: it keeps the initial level. `Weighted`: by one score. `PerCategory`: for each tool category on its own. `Milestone`: by fixed requirements.',
    }),
    minTasks: Type.Optional(
      count(
        1,
        MAX_TASK_RECORDS,
        'Minimum number of completed tasks for every rise, unless a rule of the type has its own.',
        STRATEGY_DEFAULTS.minTasks,
      ),
    ),
    minRatings: Type.Optional(
      count(0, MAX_TASK_RECORDS, 'Minimum number of rated tasks for every rise.', STRATEGY_DEFAULTS.minRatings),
    ),
    requireHuman: Type.Optional(
      setOf(
        Type.Enum(['restricted', 'standard', 'elevated'], { description: 'A level.' }),
        3,
        'Levels that an agent reaches only with the decision of an approver. Level elevated always needs one, and must be in this list when the ceiling allows it.',
      ),
    ),
    weighted: Type.Optional(Weighted),
    milestone: Type.Optional(Milestone),
    categories: Type.Optional(
      Type.Array(CategoryRule, {
        maxItems: TOOL_CATEGORIES.length,
        'x-kubernetes-list-type': 'map',
        'x-kubernetes-list-map-keys': ['category'],
        description:
          'The tool categories with a level of their own. Only for type `PerCategory`. All other requests keep `level.initial`.',
      }),
    ),
  },
  { ...closed, description: 'How agents earn a higher access level. No strategy alone raises an agent to elevated.' },
);
export type Strategy = Static<typeof Strategy>;

export const Decay = Type.Object(
  {
    idle: Type.Optional({
      ...Duration,
      description: 'An agent without a task for this long is lowered by one level.',
    }),
    maxErrorPercent: Type.Optional(
      count(
        0,
        100,
        'Above this failure rate, in percent, a tool is demoted (on a cluster: deactivated for its agent), and an agent is lowered by one level. With strategy `Disabled` agents are lowered only when `decay` is set.',
        STRATEGY_DEFAULTS.maxErrorPercent,
      ),
    ),
    maxHarmPercent: Type.Optional(
      count(
        0,
        100,
        'A tool is deactivated for an agent when the outcomes of its tasks show that the tool spoils more than this share of them, in percent. 100 deactivates none.',
        STRATEGY_DEFAULTS.maxHarmPercent,
      ),
    ),
    reverifyEvery: Type.Optional({
      ...Duration,
      description: 'The interval of the quality checks of agents, and of the runs of the tests of tools in service.',
    }),
    minQuality: Type.Optional(
      count(
        0,
        10,
        'An agent whose tasks since the last quality check have a lower mean rating is lowered by one level. Requires `reverifyEvery`.',
      ),
    ),
    coolDown: Type.Optional({
      ...Duration,
      default: STRATEGY_DEFAULTS.coolDown,
      description: 'Minimum time after an agent was lowered before it can rise again. Only later tasks count then.',
    }),
  },
  {
    ...closed,
    description: 'How agents and tools lose trust. Needs no approval and takes precedence over a rise.',
  },
);
export type Decay = Static<typeof Decay>;
