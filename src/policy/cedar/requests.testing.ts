import { posix } from 'node:path';
import type { Context, EntityJson, EntityUid } from '@cedar-policy/cedar-wasm/nodejs';
import { isActionType } from '../../api/v1alpha1/actions.ts';
import { type JsonObject, isJsonObject } from '../../lib/json.ts';
import type { PolicyRequest, PolicySnapshot } from '../types.ts';
import { limitsOf } from './levels.testing.ts';

/** One question to Cedar, without its policies. */
export interface CedarQuestion {
  principal: EntityUid;
  action: EntityUid;
  resource: EntityUid;
  context: Context;
  entities: EntityJson[];
}

/** The question of a request in normal form: Cedar compares texts and knows neither paths nor names of hosts. */
export function cedarQuestion(request: PolicyRequest, snapshot: PolicySnapshot, unattended: boolean): CedarQuestion {
  const principal = { type: 'Agent', id: snapshot.agent.name };
  const resource = { type: request.kind, id: 'asked' };
  const { agent, policy, level, categoryLevels = {}, generation = 0 } = snapshot;
  const category = categoryOf(request);
  const earned = (category === undefined ? undefined : categoryLevels[category]) ?? level;
  return {
    principal,
    action: { type: 'Action', id: request.kind },
    resource,
    context: {
      unattended,
      tainted: snapshot.tainted,
      private: snapshot.hasPrivateData === true,
      ...(request.kind === 'Tool' ? argumentsOf(request.arguments) : {}),
    },
    entities: [
      { uid: principal, attrs: { generation, ...limitsOf(earned, policy.spec, agent.spec.constraints) }, parents: [] },
      { uid: resource, attrs: attributesOf(request), parents: [] },
    ],
  };
}

const CATEGORIES = {
  File: 'file_system',
  Forge: 'code_execution',
  Memory: 'memory',
  Message: 'communication',
  Network: 'web',
} as const;

/** The tool category whose level decides. */
function categoryOf(request: PolicyRequest) {
  if (request.kind === 'Tool') return request.category;
  if (request.kind === 'Model' || request.kind === 'Promote') return undefined;
  return request.kind in CATEGORIES ? CATEGORIES[request.kind as keyof typeof CATEGORIES] : 'communication';
}

/** The arguments by which the compared rules decide. */
function argumentsOf(input: unknown): Context {
  const members = isJsonObject(input as JsonObject) ? (input as JsonObject) : {};
  const known = Object.entries(members).filter(([, value]) => typeof value === 'string' || typeof value === 'boolean');
  return { call: input !== undefined, ...Object.fromEntries(known) } as Context;
}

function attributesOf(request: PolicyRequest): EntityJson['attrs'] {
  switch (request.kind) {
    case 'Tool':
      return {
        id: request.name,
        name: request.name.trim().toLowerCase(),
        category: request.category,
        action: request.action,
        actionCategory: request.action.slice(0, request.action.indexOf(':')),
        builtIn: isActionType(request.action),
        forged: request.forged,
      };
    case 'Network':
      return { host: request.host.toLowerCase(), port: request.port, address: /^[0-9.]+$/.test(request.host) };
    case 'File':
      return { path: posix.resolve('/w/a', request.path).replace(/(.)\/$/, '$1'), access: request.access };
    case 'Forge':
      return { mode: request.mode, apis: [...request.apis] };
    case 'Message':
    case 'Kill':
      return { agent: request.agent, child: request.child === true };
    case 'Schedule':
      return { others: 0, runsPerHour: 0, depth: 0, ...given(request) };
    default:
      return given(request);
  }
}

function given({ kind: _ofTheAction, ...members }: PolicyRequest): EntityJson['attrs'] {
  return members as EntityJson['attrs'];
}
