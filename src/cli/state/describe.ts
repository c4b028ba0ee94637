import { openAudit } from '../../audit/recorded-trail.ts';
import { systemClock } from '../../lib/clock.ts';
import { TemperError } from '../../lib/errors.ts';
import { describeNotInForce, fieldsNotInForce } from '../../api/not-in-force.ts';
import { type Json, type JsonObject, isJsonObject, member, textAt } from '../../lib/json.ts';
import { printable } from '../../lib/printable.ts';
import type { RecordStore, StoredRecord } from '../../lib/record-store.ts';
import { type ForgeTelemetry, forgeTelemetry } from '../../tempering/registry/forge-telemetry.ts';
import { type CliIo, EXIT } from '../io.ts';
import { toJsonText, toYamlText } from '../objects/data-format.ts';
import { lookupKind, STATE_KINDS } from '../objects/kinds.ts';
import type { ObjectFormat } from '../objects/output-formats.ts';
import { describeObject, type ExtraSection, titleOf } from '../objects/sections.ts';
import { oneTarget } from '../objects/targets.ts';
import { notFound, openStateRecords } from './state-records.ts';
import { matchesTool, listStateTools, toolWithEvidence } from './state-tools.ts';
import { listKind } from './get.ts';

export interface DescribeOptions {
  /** `KIND NAME` or `KIND/NAME`. */
  targets: readonly string[];
  state: string;
  output: ObjectFormat;
}

/** Prints one object in sections, or whole as JSON or YAML. A tool is found by object name, digest or the name that models use, and is printed with its evidence and uses. */
export async function describe(options: DescribeOptions, io: CliIo): Promise<number> {
  const { kind: kindName, name } = oneTarget(options.targets, STATE_KINDS);
  const kind = lookupKind(kindName);
  const records = await openStateRecords(options.state, io);
  const value = await valueOf(records, kind.collection, name);
  if (options.output === 'json') io.out(toJsonText(value));
  else if (options.output === 'yaml') io.out(toYamlText(value));
  else io.out(textOf(value, name));
  return EXIT.ok;
}

/** An agent and a tool come with more than the object, each part in a section of its own. */
function textOf(value: Json, name: string): string {
  const now = new Date();
  if (!isJsonObject(value) || value['object'] === undefined) return describeObject(value, name, now, []);
  const { object, ...rest } = value;
  const extra: ExtraSection[] = Object.entries(rest).map(([key, part]) => ({
    title: titleOf(key),
    value: part,
  }));
  return describeObject(object ?? null, name, now, extra);
}

async function valueOf(records: RecordStore, collection: string, name: string): Promise<Json> {
  if (collection === 'tools') return findTool(records, name);
  const value = await find(records, collection, name);
  if (collection === 'agents')
    return { object: value, forging: { ...(await forgingOf(records, name)) }, ...notInForce('Agent', value) };
  if (collection !== 'trustpolicies') return value;
  return { object: value, judge: judgeOf(value), ...notInForce('TrustPolicy', value) };
}

/** The fields of the object that a run does not act on. Fields that only a cluster ignores are in force here. */
function notInForce(kind: 'Agent' | 'TrustPolicy', object: Json): JsonObject {
  const fields = fieldsNotInForce(kind, member(object, 'spec')).filter(({ where }) => where !== 'cluster');
  return fields.length === 0 ? {} : { notInForce: fields.map(describeNotInForce) };
}

/** The effect of `spec.models.judge` and `spec.models.judgeMayBeAuthor`. */
function judgeOf(policy: Json): string {
  const models = member(member(policy, 'spec'), 'models');
  const judge = textAt(models, ['judge']);
  if (judge === '') return '<none>; without a judge every forge is refused';
  const mayBeAuthor = member(models, 'judgeMayBeAuthor') === true;
  return mayBeAuthor
    ? `${judge}; it may judge tools that it wrote itself (models.judgeMayBeAuthor)`
    : `${judge}; it refuses every tool that it wrote itself`;
}

/** Forge statistics of an agent from the audit log: accepted and finally refused tools, with reasons. */
async function forgingOf(records: RecordStore, agent: string): Promise<ForgeTelemetry> {
  const chain = await openAudit({ records, clock: systemClock });
  return forgeTelemetry(await chain.records(), agent);
}

async function find(records: RecordStore, collection: string, name: string): Promise<Json> {
  const all = await listKind(records, collection);
  const [found, ...others] = all.filter((record) => record.name === name);
  if (found === undefined) throw notFound(collection, name, all);
  if (others.length > 0) throw severalAgents(name, [found, ...others]);
  return found.value;
}

/** Sessions of different agents may have one id. */
function severalAgents(session: string, records: readonly StoredRecord[]): TemperError {
  const agents = records.map(({ value }) => `${textAt(value, ['namespace'], 'default')}/${textAt(value, ['agent'])}`);
  return new TemperError(
    'TEMPER_USAGE',
    `several agents have "${printable(session, 253)}": ${printable(agents.join(', '), 500)}. Print one with temper trace ${printable(session, 253)} --agent NAME`,
  );
}

/** The first tool with the name. Tools of tier Agent and Shared come before tools of sessions. */
async function findTool(records: RecordStore, name: string): Promise<Json> {
  const all = await listStateTools(records);
  const found = all.find((tool) => matchesTool(tool, name));
  if (found === undefined) throw notFound('tools', name, all);
  return toolWithEvidence(records, found);
}
