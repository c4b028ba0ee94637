import { dottedPath } from '../findings.ts';
import type { Finding, PatternRules, ValidPart } from '../findings.ts';
import { parseDecimalMicros, parseDuration, parseMillicores, parseQuantityBytes } from '../quantities.ts';
import { scheduleIsDue } from '../schedule/check.ts';
import type { AgentSpec } from '../v1alpha1/agent.ts';
import { a2aHasCallers } from './agent/a2a.ts';
import { builtInApprovalsExist } from './agent/constraints.ts';
import { contextIsReadable } from './agent/context.ts';
import { hooksAreSound } from './agent/hooks.ts';
import { returnsIsSchema } from './agent/returns.ts';
import { toolSettingsAreSound } from './agent/tool-settings.ts';
import { checkMeasures, checkPattern, checkPatterns, itemsOf, present, quoted } from './shared.ts';

type Spec = ValidPart<AgentSpec>;
type AgentCheck = (spec: Spec, patterns: PatternRules) => Finding[];

/** Cross-field rules of an Agent. */
export const AGENT_CHECKS: readonly AgentCheck[] = [
  patternsAreWellFormed,
  measuresAreInRange,
  idleTimesAreInRange,
  grantsAreNotDenied,
  fallbacksDiffer,
  apisNeedSandbox,
  codeStoresSources,
  programsExplore,
  scheduleIsDue,
  hooksAreSound,
  returnsIsSchema,
  toolSettingsAreSound,
  a2aHasCallers,
  contextIsReadable,
  builtInApprovalsExist,
];

function patternsAreWellFormed(spec: Spec, rules: PatternRules): Finding[] {
  const { grants } = spec;
  return [
    ...checkPatterns(rules, 'tool', grants?.tools, ['spec', 'grants', 'tools']),
    ...checkPatterns(rules, 'host', grants?.network, ['spec', 'grants', 'network']),
    ...checkPatterns(rules, 'key', grants?.memory?.read, ['spec', 'grants', 'memory', 'read']),
    ...checkPatterns(rules, 'key', grants?.memory?.write, ['spec', 'grants', 'memory', 'write']),
    ...checkPatterns(rules, 'name', grants?.messages, ['spec', 'grants', 'messages']),
    ...checkPatterns(rules, 'name', grants?.spawn, ['spec', 'grants', 'spawn']),
    ...checkPatterns(rules, 'name', grants?.kill, ['spec', 'grants', 'kill']),
    ...eventPatterns(spec, rules),
    ...checkPatterns(rules, 'name', grants?.shell, ['spec', 'grants', 'shell']),
    ...checkPatterns(rules, 'name', grants?.environment, ['spec', 'grants', 'environment']),
    ...checkPatterns(rules, 'tool', spec.denyTools, ['spec', 'denyTools']),
    ...[...itemsOf(spec.arguments, ['spec', 'arguments'])].flatMap(([pin, path]) => [
      ...checkPattern(rules, 'tool', pin.tool, [...path, 'tool']),
      ...checkPatterns(rules, 'path', pin.allow, [...path, 'allow']),
    ]),
  ];
}

function eventPatterns({ grants }: Spec, rules: PatternRules): Finding[] {
  const { publish, subscribe } = grants?.events ?? {};
  return [
    ...checkPatterns(rules, 'event', publish, ['spec', 'grants', 'events', 'publish']),
    ...checkPatterns(rules, 'event', subscribe, ['spec', 'grants', 'events', 'subscribe']),
  ];
}

function measuresAreInRange(spec: Spec): Finding[] {
  const { model, limits, quotas, sandbox } = spec;
  const money = { parse: parseDecimalMicros, minimum: 0, allowed: 'an amount as a string, e.g. "2.00"' };
  const bytes = { parse: parseQuantityBytes, minimum: 1, allowed: 'bytes such as 128Mi, more than 0' };
  return checkMeasures([
    {
      path: ['spec', 'model', 'temperature'],
      value: model?.temperature,
      parse: parseDecimalMicros,
      minimum: 0,
      maximum: 2_000_000,
      allowed: 'a string from "0" to "2"',
    },
    {
      path: ['spec', 'limits', 'toolTimeout'],
      value: limits?.toolTimeout,
      parse: parseDuration,
      minimum: 1,
      maximum: 3_600_000,
      allowed: 'a duration from 1ms to 1h',
    },
    { path: ['spec', 'quotas', 'costPerHour'], value: quotas?.costPerHour, ...money },
    { path: ['spec', 'quotas', 'costPerDay'], value: quotas?.costPerDay, ...money },
    { path: ['spec', 'quotas', 'costPerMonth'], value: quotas?.costPerMonth, ...money },
    { path: ['spec', 'quotas', 'networkBytesPerHour'], value: quotas?.networkBytesPerHour, ...bytes, minimum: 0 },
    { path: ['spec', 'sandbox', 'resources', 'memory'], value: sandbox?.resources?.memory, ...bytes },
    { path: ['spec', 'sandbox', 'workspace', 'size'], value: sandbox?.workspace?.size, ...bytes },
    {
      path: ['spec', 'sandbox', 'resources', 'cpu'],
      value: sandbox?.resources?.cpu,
      parse: parseMillicores,
      minimum: 1,
      allowed: 'CPU cores such as 500m or 2, more than 0',
    },
  ]);
}

function idleTimesAreInRange({ idle }: Spec): Finding[] {
  return checkMeasures([
    {
      path: ['spec', 'idle', 'scaleToZeroAfter'],
      value: idle?.scaleToZeroAfter,
      parse: parseDuration,
      minimum: 1_000,
      allowed: 'a duration of 1s or more',
    },
    {
      path: ['spec', 'idle', 'closeSessionsAfter'],
      value: idle?.closeSessionsAfter,
      parse: parseDuration,
      minimum: 3_600_000,
      maximum: 180 * 24 * 3_600_000,
      allowed: 'a duration from 1h to 4320h',
    },
  ]);
}

/** denyTools takes precedence over grants, so a grant that denyTools covers never has an effect. */
function grantsAreNotDenied(spec: Spec, rules: PatternRules): Finding[] {
  const denied = present(spec.denyTools);
  return [...itemsOf(spec.grants?.tools, ['spec', 'grants', 'tools'])].flatMap(([tool, path]): Finding[] =>
    rules.patternError(tool, 'tool') === undefined && rules.covers(denied, tool, 'tool')
      ? [
          {
            path,
            rule: 'overlap',
            message: `${dottedPath(path)} ${quoted(tool)} is granted, but spec.denyTools denies all of it`,
            fix: 'remove it from one of the two',
          },
        ]
      : [],
  );
}

function fallbacksDiffer(spec: Spec): Finding[] {
  const seen = new Set([spec.model?.primary]);
  return [...itemsOf(spec.model?.fallbacks, ['spec', 'model', 'fallbacks'])].flatMap(([model, path]): Finding[] => {
    if (!seen.has(model)) {
      seen.add(model);
      return [];
    }
    const message = `${dottedPath(path)} ${quoted(model)} is already in the list of models to try`;
    return [{ path, rule: 'duplicate-item', message, fix: 'name another model, or remove it' }];
  });
}

function apisNeedSandbox(spec: Spec): Finding[] {
  const { forge } = spec;
  if (forge?.apis === undefined || forge.apis.length === 0 || forge.modes?.includes('Sandbox') === true) return [];
  return [
    {
      path: ['spec', 'forge', 'apis'],
      rule: 'apis-need-sandbox',
      message: 'spec.forge.apis has no effect: composed tools cannot use host functions',
      fix: 'add Sandbox to spec.forge.modes, or remove spec.forge.apis',
    },
  ];
}

/** Code that forges contains the source of the tool, and is stored with the session. */
function codeStoresSources({ invocation, forge }: Spec): Finding[] {
  if (invocation !== 'Code' || forge?.persistSource !== false) return [];
  return [
    {
      path: ['spec', 'invocation'],
      rule: 'code-stores-sources',
      message: 'spec.invocation Code cannot withhold sources: the code that forges a tool is stored with the session',
      fix: 'set spec.invocation to Tools, or remove spec.forge.persistSource',
    },
  ];
}

/** Programs list the tools by themselves. */
function programsExplore({ invocation, disclosure, model }: Spec): Finding[] {
  if ((disclosure?.mode ?? 'Inline') === 'Inline') return [];
  const field = model?.agent === undefined ? 'spec.invocation Code' : 'spec.model.agent';
  if (model?.agent === undefined && invocation !== 'Code') return [];
  return [
    {
      path: ['spec', 'disclosure', 'mode'],
      rule: 'programs-explore',
      message: `spec.disclosure has no effect with ${field}: the program explores the tools itself`,
      fix: `remove spec.disclosure, or ${field}`,
    },
  ];
}
