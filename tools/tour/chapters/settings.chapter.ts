import { same } from '../expectations.ts';
import type { Walk } from '../walk.ts';
import type { Travellers } from './tokens.chapter.ts';

/** A number that a double would turn into 12345678901234567000. */
const EXACT_NUMBER = '12345678901234567890.10';

/** A setting, from its creation to its removal. */
export async function settingsChapter(walk: Walk, { ivy, carl }: Travellers, run: string): Promise<void> {
  walk.chapter('Settings');
  const api = `${walk.settings.settings}/platform/v1`;
  const name = `limit-${run}`;
  const url = `${api}/subsystems/Tour/settings/${name}`;
  const body = `{"settingValue":${EXACT_NUMBER}}`;
  const awaitChange = await followChanges(walk, `${api}/changes?subsystem=tour`, carl);
  const stored = 'Stored together with its history entry, in one transaction.';
  await walk.step('Ivy writes a setting', { method: 'PUT', url, token: ivy, body }, stored);
  await awaitChange(name);
  const value = { url: `${url.replace('/Tour/', '/TOUR/')}/value`, token: carl };
  await walk.step('Carl reads the bare value, with other capitals', value, (response) => {
    same('the value, byte for byte', response.text, EXACT_NUMBER);
    return 'No wrapper, names match in any case, and the number kept every digit.';
  });
  const forbidden = { method: 'PUT', url, token: carl, body, status: 403 } as const;
  await walk.step('Carl tries to write it', forbidden, (response) => {
    same('the content type', response.headers.get('content-type')?.split(';')[0], 'application/problem+json');
    return 'Customers read; only internal partners write.';
  });
  const second = { subsystemName: 'Tour', settingName: `${name}-too` };
  await writeMany(walk, api, ivy, [
    { ...second, settingName: name, settingValue: 7 },
    { ...second, settingValue: 8, ifNoneMatch: '*' },
  ]);
  const both = {
    method: 'POST',
    url: `${api}/commands/read`,
    token: carl,
    body: { settings: [{ subsystemName: 'Tour', settingName: name }, second] },
  } as const;
  await walk.step('Carl reads both in one request', both, (response) => {
    const { settings: found } = JSON.parse(response.text) as { settings: { settingValue: number }[] };
    same('the values', found.map(({ settingValue }) => settingValue).toSorted(), [7, 8]);
    return 'Up to 1,000 at once; names that do not exist are listed separately.';
  });
  await lookBack(walk, api, ivy, url);
  await writeMany(walk, api, ivy, [{ ...second, delete: true }]);
}

async function writeMany(walk: Walk, api: string, token: string, writes: object[]): Promise<void> {
  const request = { method: 'POST', url: `${api}/commands/write`, token, body: { writes } } as const;
  const explanation = 'All or nothing, each under its own condition, an entry each under one request id.';
  await walk.step(`Ivy writes ${writes.length} at once`, request, explanation);
}

/** Deletes a setting, then reads who changed what, and the value before the deletion. */
async function lookBack(walk: Walk, api: string, token: string, url: string): Promise<void> {
  const gone = 'Gone from the settings; its history keeps all entries.';
  await walk.step('Ivy deletes it again', { method: 'DELETE', url, token }, gone);
  let written = '';
  const history = { url: `${api}/history?subsystem=tour&pageSize=3`, token };
  await walk.step('Ivy asks who changed what', history, (response) => {
    const entries = (JSON.parse(response.text) as { history: { operation: string; occurredAt: string }[] })
      .history;
    same('the last change', entries.at(0)?.operation, 'delete');
    written = entries.at(1)?.occurredAt ?? '';
    return 'Newest first, over all settings; by subsystem, person and time.';
  });
  const past = { url: `${url}/value?at=${written}`, token };
  await walk.step('Ivy reads the setting as it was', past, (response) => {
    same('the value', response.text, '7');
    return 'Deleted since, but still readable.';
  });
  const restore = {
    method: 'POST',
    url: `${api}/subsystems/Tour/commands/restore`,
    token,
    body: { at: written, dryRun: true },
  } as const;
  await walk.step('Ivy asks what a restoration to that instant would change', restore, (response) => {
    const { changes } = JSON.parse(response.text) as {
      changes: { settingName: string; operation: string }[];
    };
    const change = changes.find(({ settingName }) => url.endsWith(`/${settingName}`));
    same('what becomes of the setting', change?.operation, 'write');
    return 'A dry run: nothing has changed.';
  });
}

/** Reads the current cursor of the feed. @returns a step that waits for a later change */
async function followChanges(
  walk: Walk,
  feed: string,
  token: string,
): Promise<(settingName: string) => Promise<unknown>> {
  let next = '';
  await walk.step(
    'Carl asks for the current cursor of the feed of changes',
    { url: feed, token },
    (response) => {
      next = (JSON.parse(response.text) as { next: string }).next;
      return 'From here on he misses nothing, whichever replica he asks.';
    },
  );
  const url = `${feed}&waitSeconds=10&after=${next}`;
  return (settingName) =>
    walk.step('Carl waits for changes', { url, token }, (response) => {
      const { changes } = JSON.parse(response.text) as { changes: { settingName: string }[] };
      same('the setting', changes.at(0)?.settingName, settingName);
      return 'Reported within a second of the write; a client keeps its copy current this way.';
    });
}
