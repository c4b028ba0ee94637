import { modelNames } from '../../api/names.ts';
import { describeLimit } from '../constraints/constrained-level.ts';
import type { PreparedPolicy } from '../prepare.ts';
import { allowed, deny, escalate, notApplicable, passed } from './rule.ts';
import type { RequestOf, Rule } from './rule.ts';
import { isSharedKey } from '../shared-keys.ts';
import { taintedRule } from './common.ts';
import { ROOT, pathSegments } from '../patterns/pattern-subjects.ts';

/** The segments of an absolute path, resolved against the workspace, or the reason why the path is invalid. */
export function resolvePath({ workspace }: PreparedPolicy, path: string): readonly string[] | string {
  if (path === '') return 'is empty';
  const segments = pathSegments(path);
  if (typeof segments === 'string') return segments;
  return segments[0] === ROOT ? segments : [...workspace, ...segments];
}

export function isInScope({ level, workspace, project }: PreparedPolicy, segments: readonly string[]): boolean {
  const scope = level.constraints.files;
  if (scope === 'Full') return true;
  return isBelow(workspace, segments) || (scope === 'Project' && isBelow(project, segments));
}

function isBelow(root: readonly string[], segments: readonly string[]): boolean {
  return root.every((segment, index) => segments[index] === segment);
}

export function fileRules(prepared: PreparedPolicy): Rule<RequestOf<'File'>>[] {
  const { level } = prepared;
  const scope = level.constraints.files;
  return [
    {
      id: 'path.form',
      check: ({ path }) => {
        const resolved = resolvePath(prepared, path);
        return typeof resolved === 'string'
          ? deny(`The path ${resolved}; write it plainly, relative to the workspace.`)
          : undefined;
      },
      explain: () => passed('the path is in plain form'),
    },
    {
      id: 'constraint.files',
      check: ({ path, access }) => {
        const resolved = resolvePath(prepared, path);
        if (typeof resolved !== 'string' && isInScope(prepared, resolved)) return undefined;
        return deny(
          `The path is outside the ${scope.toLowerCase()}, which is all that ${level.limits.files.by} allows to ${access}; use a path below the workspace.`,
        );
      },
      explain: () => allowed(`within file scope ${scope}: ${describeLimit(level, 'files')}`),
    },
  ];
}

export function memoryRules(prepared: PreparedPolicy): Rule<RequestOf<'Memory'>>[] {
  const { memoryRead, memoryWrite, snapshot } = prepared;
  return [
    taintedRule<RequestOf<'Memory'>>(prepared, 'memory', ({ key, access }) => access === 'write' && isSharedKey(key)),
    {
      id: 'grant.memory',
      check: ({ key, access }) => {
        const set = access === 'read' ? memoryRead : memoryWrite;
        return set.has(key)
          ? undefined
          : deny(
              `Agent "${snapshot.agent.name}" may not ${access} memory "${key}": grants.memory.${access} allows ${set.describe()}.`,
            );
      },
      explain: ({ key, access }) =>
        allowed(`granted by grants.memory.${access} "${(access === 'read' ? memoryRead : memoryWrite).find(key)}"`),
    },
  ];
}

export function messageRules(prepared: PreparedPolicy): Rule<RequestOf<'Message'>>[] {
  const { messages, snapshot } = prepared;
  return [
    taintedRule<RequestOf<'Message'>>(prepared, 'message'),
    {
      id: 'grant.messages',
      check: ({ agent, child }) =>
        child === true || messages.has(agent)
          ? undefined
          : deny(
              `Agent "${snapshot.agent.name}" may not message "${agent}": grants.messages allows ${messages.describe()}.`,
            ),
      explain: ({ agent, child }) =>
        allowed(child === true ? 'the agent started it' : `granted by grants.messages "${messages.find(agent)}"`),
    },
  ];
}

/** The default model of the provider configuration. */
const DEFAULT_MODEL = 'default/default';

export function modelRules({ models, snapshot }: PreparedPolicy): Rule<RequestOf<'Model'>>[] {
  const { model: modelSpec } = snapshot.agent.spec;
  const named = modelNames(modelSpec);
  const policy = snapshot.policy.name;
  return [
    {
      id: 'grant.model',
      check: ({ model }) =>
        named.includes(model) || named.includes(DEFAULT_MODEL)
          ? undefined
          : deny(`Agent "${snapshot.agent.name}" does not name model ${model}: spec.model is ${named.join(', ')}.`),
      explain: () => allowed(`spec.model names ${named.join(', ')}`),
    },
    {
      id: 'policy.models',
      check: ({ model }) =>
        models === undefined || models.has(model)
          ? undefined
          : deny(`TrustPolicy "${policy}" does not allow model ${model}: models.allow is ${models.describe()}.`),
      explain: ({ model }) =>
        models === undefined
          ? notApplicable('models.allow is absent: any configured model')
          : allowed(`allowed by models.allow "${models.find(model)}"`),
    },
  ];
}

export function promoteRules(prepared: PreparedPolicy): Rule<RequestOf<'Promote'>>[] {
  const { promotion } = prepared.snapshot.policy.spec;
  return [
    taintedRule<RequestOf<'Promote'>>(prepared, 'promote'),
    {
      id: 'promotion.human',
      check: ({ tool, tier }) => {
        if (tier === 'Shared')
          return escalate(`Tool "${tool}" would reach every agent of the namespace; an approver decides.`);
        return promotion?.toAgent?.requireHuman === true
          ? escalate(
              `Tool "${tool}" would remain after its session, and promotion.toAgent.requireHuman is set; an approver decides.`,
            )
          : undefined;
      },
      explain: () => passed('tier Agent needs no approver under this policy'),
    },
  ];
}
