import { TemperError } from '../../../lib/errors.ts';
import { printable } from '../../../lib/printable.ts';
import { type CliIo, EXIT } from '../../io.ts';
import { openCluster } from '../cluster.ts';
import type { ClusterOptions } from '../options.ts';
import { webhookHelp } from './webhook-help.ts';

interface WebhookOptions extends ClusterOptions {
  agent: string;
  trigger: string;
  url: string;
}

const NAME = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/;
const URL_FORM = /^https:\/\/[A-Za-z0-9.:[\]-]+$/;

/** Prints how to call a webhook. Reads nothing: the key stays in its Secret. */
export async function webhook(options: WebhookOptions, io: CliIo): Promise<number> {
  const { agent, trigger, url } = options;
  for (const name of [agent, trigger])
    if (!NAME.test(name)) throw new TemperError('TEMPER_USAGE', `"${printable(name, 80)}" is not a name`);
  if (!URL_FORM.test(url))
    throw new TemperError('TEMPER_USAGE', `--url "${printable(url, 200)}" is not https://HOST or https://HOST:PORT`);
  await using cluster = await openCluster(options, io);
  io.out(webhookHelp({ namespace: cluster.namespace, agent, trigger, url }));
  return EXIT.ok;
}
