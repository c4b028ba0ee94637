import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { it } from 'node:test';
import { metricsPage } from './metrics-page.ts';

it('the page of metrics is the one that is committed', async () => {
  const path = 'docs/reference/metrics.md';
  const committed = await readFile(resolve(import.meta.dirname, '../..', path), 'utf8').catch(() => '');
  assert.ok(committed === metricsPage(), `${path} is out of date: run make generate`);
});
