import { stringify } from 'yaml';
import type { ResourceType } from '../../../kube/client/kube-client.ts';
import type { KubeObject } from '../../../kube/informer/store.ts';
import { TemperError } from '../../../lib/errors.ts';
import { type Json, type JsonObject, member, textAt } from '../../../lib/json.ts';
import { type Cluster, toTemperError, openCluster } from '../cluster.ts';
import { clusterKind } from '../cluster-kinds.ts';
import type { ClusterOptions } from '../options.ts';
import { type CliIo, EXIT, writeJsonLine } from '../../io.ts';
import { formatAge, table } from '../../table.ts';
import { stripManagedFields } from './get.ts';

export interface ClusterDescribeOptions extends ClusterOptions {
  kind: string;
  name: string;
  output: 'text' | 'json';
}

type FoundObject = KubeObject & JsonObject;

const EVENTS: ResourceType = { group: '', version: 'v1', plural: 'events', kind: 'Event', namespaced: true };
const MAX_EVENTS = 20;

/** Prints one object: its conditions, its events, and the object as YAML. */
export async function clusterDescribe(options: ClusterDescribeOptions, io: CliIo): Promise<number> {
  await using cluster = await openCluster(options, io);
  const type = clusterKind(options.kind);
  const found = await getObject(cluster, type, options.name, io);
  const events = await eventsOf(cluster, type, found, io);
  const object = stripManagedFields(found);
  if (options.output === 'json') {
    writeJsonLine(io, { object, events });
    return EXIT.ok;
  }
  const now = new Date();
  const conditions = listAt(member(object, 'status'), 'conditions');
  const lines = conditions.map((entry) => ['type', 'status', 'reason', 'message'].map((key) => textAt(entry, [key])));
  io.out(`${type.kind} ${options.name} in ${cluster.location}\n\n`);
  if (lines.length > 0) io.out(`${table(['CONDITION', 'STATUS', 'REASON', 'MESSAGE'], lines)}\n`);
  if (events.length > 0) {
    const rows = events.map((event) => [
      formatAge(lastSeen(event), now),
      ...['type', 'reason', 'message'].map((key) => textAt(event, [key])),
    ]);
    io.out(`${table(['SEEN', 'TYPE', 'EVENT', 'MESSAGE'], rows)}\n`);
  }
  io.out(stringify(object, { lineWidth: 0 }));
  return EXIT.ok;
}

async function getObject(cluster: Cluster, type: ResourceType, name: string, io: CliIo): Promise<FoundObject> {
  const { kube, namespace, location } = cluster;
  const found = await kube.get<FoundObject>(type, { namespace, name }, io.signal).catch((error: unknown) => {
    throw toTemperError(error, `reading ${type.plural} ${name}`, cluster);
  });
  if (found !== undefined) return found;
  throw new TemperError(
    'TEMPER_NOT_FOUND',
    `no ${type.plural} "${name}" in ${location}; list them with temper get ${type.plural}`,
  );
}

/** The events of the object, newest last; empty when the user may not read events. */
async function eventsOf(cluster: Cluster, type: ResourceType, found: FoundObject, io: CliIo): Promise<Json[]> {
  const { namespace, kube } = cluster;
  const fieldSelector = `involvedObject.kind=${type.kind},involvedObject.name=${found.metadata.name}`;
  try {
    const events = await kube.list<FoundObject>(EVENTS, { namespace, fieldSelector }, io.signal);
    const ofThis = events.filter((event) => textAt(event, ['involvedObject', 'uid']) === found.metadata.uid);
    ofThis.sort((one, other) => (lastSeen(one) ?? '').localeCompare(lastSeen(other) ?? ''));
    return ofThis.slice(-MAX_EVENTS).map(stripManagedFields);
  } catch (error) {
    const shown = toTemperError(error, 'reading events', cluster);
    if (shown instanceof TemperError && shown.code === 'TEMPER_CLUSTER_FORBIDDEN') return [];
    throw shown;
  }
}

function lastSeen(event: Json): string | undefined {
  const times = [['series', 'lastObservedTime'], ['lastTimestamp'], ['eventTime'], ['metadata', 'creationTimestamp']];
  return times.map((path) => textAt(event, path)).find((text) => text !== '');
}

function listAt(value: Json | undefined, key: string): Json[] {
  const found = member(value, key);
  return Array.isArray(found) ? found : [];
}
