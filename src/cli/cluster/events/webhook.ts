import { join } from 'node:path';
import { TemperError } from '../../../lib/errors.ts';
import { printable } from '../../../lib/printable.ts';
import { type CliIo, EXIT } from '../../io.ts';
import { WEBHOOK_KEYS_FILE } from '../../run/webhooks/webhook-keys.ts';
import { configFolder } from '../../state/config-folder.ts';
import { openCluster } from '../cluster.ts';
import type { ClusterOptions } from '../options.ts';
import { localWebhookHelp, webhookHelp } from './webhook-help.ts';

interface WebhookOptions extends ClusterOptions {
  agent: string;
  trigger: string;
  url: string;
}

const NAME = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/;
const URL_FORM = /^https:\/\/[A-Za-z0-9.:[\]-]+$/;
/** Of a process on this machine, as `temper run` prints it. */
const LOCAL_FORM = /^http:\/\/127\.0\.0\.1:[0-9]{1,5}$/;

/** Prints how to call a webhook, of a cluster or of `temper run`. Reads no key. */
export async function webhook(options: WebhookOptions, io: CliIo): Promise<number> {
  const { agent, trigger, url } = options;
  for (const name of [agent, trigger])
    if (!NAME.test(name)) throw new TemperError('TEMPER_USAGE', `"${printable(name, 80)}" is not a name`);
  if (LOCAL_FORM.test(url)) {
    const { namespace = 'default' } = options;
    io.out(localWebhookHelp({ namespace, agent, trigger, url }, join(configFolder(io), WEBHOOK_KEYS_FILE)));
    return EXIT.ok;
  }
  if (!URL_FORM.test(url))
    throw new TemperError(
      'TEMPER_USAGE',
      `--url "${printable(url, 200)}" is not https://HOST, https://HOST:PORT, or http://127.0.0.1:PORT for temper run`,
    );
  await using cluster = await openCluster(options, io);
  io.out(webhookHelp({ namespace: cluster.namespace, agent, trigger, url }));
  return EXIT.ok;
}
