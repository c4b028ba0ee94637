import { isJsonObject, type Json, type JsonObject } from '../../lib/json.ts';
import type { PlatformSubject } from './subjects.ts';

/** The kinds whose changes are events. */
export type ObservedKind = 'Agent' | 'EmergentTool' | 'ApprovalRequest';

/** What remains of an object when it is gone. */
export interface ObjectIdentity {
  readonly kind: ObservedKind;
  readonly uid: string;
  readonly namespace: string;
  readonly name: string;
  /** The agent that it is, or that it is about. */
  readonly agent: string;
  /** The UID of this agent; of the object itself when no agent has it. */
  readonly ownerUid: string;
  /** The agent that started it. */
  readonly parent?: string;
  /** The tool that it is. */
  readonly tool?: string;
}

interface FactEvent {
  readonly subject: PlatformSubject;
  readonly data: JsonObject;
  /** Only a change from this value is an event. */
  readonly after?: string;
}

/** One fact about an object. Another value is an event, unless `event` is absent. */
export interface ObjectFact {
  readonly name: string;
  readonly value: string;
  readonly event?: FactEvent;
}

/** What the last published events said about an object. */
export interface ObservedRecord {
  readonly object: ObjectIdentity;
  /** Values of facts by their names. */
  readonly values: Readonly<Record<string, string>>;
}

const KINDS: readonly unknown[] = ['Agent', 'EmergentTool', 'ApprovalRequest'] satisfies ObservedKind[];

/** Only the operator writes these documents, so their form is checked as far as it decides. */
export function parseObserved(value: Json | undefined): ObservedRecord | undefined {
  if (!isJsonObject(value) || !isJsonObject(value['object']) || !isJsonObject(value['values'])) return undefined;
  const { kind, uid, namespace, name, agent, ownerUid } = value['object'];
  if (!KINDS.includes(kind) || ![uid, namespace, name, agent, ownerUid].every(isText)) return undefined;
  return Object.values(value['values']).every(isText) ? (value as unknown as ObservedRecord) : undefined;
}

function isText(value: Json | undefined): boolean {
  return typeof value === 'string';
}
