import assert from 'node:assert/strict';
import { it } from 'node:test';
import { NAMESPACE, type SampleSetup } from './sample-setup.ts';

/** The sample with a skill. */
export function skills(setup: () => SampleSetup): void {
  it('an agent finds the skill of its team, loads it with its resource and follows it', async () => {
    await using _sample = await setup().start('skills', 'editor');
    const { cluster } = setup();
    await cluster.waitFor('capability/release-notes', 'Available', NAMESPACE);
    const printed = await setup().run(
      'kubectl temper send editor "Write the note for: tab completion of names." --follow -n quickstart',
    );
    assert.match(printed, /discover_capabilities[^]*load_tool[^]*load_tool_resource/);
    assert.match(printed, /◂ editor: Added: the command line completes names with the tab key\.\n$/);
  });
}
