import { same } from '../expectations.ts';
import type { TourSettings } from '../addresses.ts';
import type { Walk } from '../walk.ts';
import type { Travellers } from './tokens.chapter.ts';

/** A number that a double would turn into 12345678901234567000. */
const EXACT_NUMBER = '12345678901234567890.10';

/** A setting, from its creation to its removal. */
export async function settingsChapter(
  walk: Walk,
  settings: TourSettings,
  { ivy, carl }: Travellers,
  run: string,
): Promise<void> {
  walk.chapter('Settings');
  const name = `limit-${run}`;
  const url = `${settings.settings}/platform/v1/subsystems/Tour/settings/${name}`;
  const body = `{"settingValue":${EXACT_NUMBER}}`;
  const hearOf = await followChanges(walk, `${settings.settings}/platform/v1/changes?subsystem=tour`, carl);
  await walk.step('Ivy writes a setting', { method: 'PUT', url, token: ivy, body }, (response) => {
    same('the status', response.status, 200);
    return 'Stored together with its history entry, in one transaction.';
  });
  await hearOf(name);
  await walk.step(
    'Carl reads the bare value, with other capitals',
    { method: 'GET', url: `${url.replace('/Tour/', '/TOUR/')}/value`, token: carl },
    (response) => {
      same('the status', response.status, 200);
      same('the value, byte for byte', response.text, EXACT_NUMBER);
      return 'No wrapper, names match in any case, and the number kept every digit.';
    },
  );
  await walk.step('Carl tries to write it', { method: 'PUT', url, token: carl, body }, (response) => {
    same('the status', response.status, 403);
    same('the content type', response.headers.get('content-type')?.split(';')[0], 'application/problem+json');
    return 'Customers read; only internal partners write.';
  });
  const second = { subsystemName: 'Tour', settingName: `${name}-too` };
  await writeMany(walk, settings, ivy, [
    { ...second, settingName: name, settingValue: 7 },
    { ...second, settingValue: 8, ifNoneMatch: '*' },
  ]);
  await readMany(walk, settings, carl, [{ subsystemName: 'Tour', settingName: name }, second]);
  await lookBack(walk, settings, ivy, url);
  await writeMany(walk, settings, ivy, [{ ...second, delete: true }]);
}

async function writeMany(walk: Walk, settings: TourSettings, token: string, writes: object[]): Promise<void> {
  const url = `${settings.settings}/platform/v1/commands/write`;
  const title = `Ivy writes ${String(writes.length)} at once`;
  await walk.step(title, { method: 'POST', url, token, body: { writes } }, (response) => {
    same('the status', response.status, 200);
    return 'All or nothing, each under its own condition, an entry each under one request id.';
  });
}

async function readMany(walk: Walk, settings: TourSettings, token: string, names: object[]): Promise<void> {
  const url = `${settings.settings}/platform/v1/commands/read`;
  const body = { settings: names };
  await walk.step('Carl reads both in one request', { method: 'POST', url, token, body }, (response) => {
    same('the status', response.status, 200);
    const { settings: found } = JSON.parse(response.text) as { settings: { settingValue: number }[] };
    same('the values', found.map(({ settingValue }) => settingValue).toSorted(), [7, 8]);
    return 'Up to 1,000 at once; names that there are not are listed apart.';
  });
}

/** A deletion, who changed what, and the setting as it was before. */
async function lookBack(walk: Walk, settings: TourSettings, token: string, url: string): Promise<void> {
  await walk.step('Ivy deletes it again', { method: 'DELETE', url, token }, (response) => {
    same('the status', response.status, 200);
    return 'Gone from the settings; its history keeps all entries.';
  });
  const history = `${settings.settings}/platform/v1/history?subsystem=tour&pageSize=3`;
  let written = '';
  await walk.step('Ivy asks who changed what', { method: 'GET', url: history, token }, (response) => {
    same('the status', response.status, 200);
    const entries = (JSON.parse(response.text) as { history: { operation: string; occurredAt: string }[] })
      .history;
    same('the last change', entries.at(0)?.operation, 'delete');
    written = entries.at(1)?.occurredAt ?? '';
    return 'Newest first, over all settings; by subsystem, person and time.';
  });
  const past = `${url}/value?at=${written}`;
  await walk.step('Ivy reads the setting as it was', { method: 'GET', url: past, token }, (response) => {
    same('the status', response.status, 200);
    same('the value', response.text, '7');
    return 'Deleted since, and still to be read.';
  });
  const restore = `${settings.settings}/platform/v1/subsystems/Tour/commands/restore`;
  const body = { at: written, dryRun: true };
  const title = 'Ivy asks what a restoration to that instant would change';
  await walk.step(title, { method: 'POST', url: restore, token, body }, (response) => {
    same('the status', response.status, 200);
    const { changes } = JSON.parse(response.text) as {
      changes: { settingName: string; operation: string }[];
    };
    const change = changes.find(({ settingName }) => url.endsWith(`/${settingName}`));
    same('what becomes of the setting', change?.operation, 'write');
    return 'A dry run: nothing has changed.';
  });
}

/** Notes where the feed stands. @returns the step that hears of a change since */
async function followChanges(
  walk: Walk,
  feed: string,
  token: string,
): Promise<(settingName: string) => Promise<unknown>> {
  let next = '';
  await walk.step(
    'Carl asks where the feed of changes stands',
    { method: 'GET', url: feed, token },
    (response) => {
      same('the status', response.status, 200);
      next = (JSON.parse(response.text) as { next: string }).next;
      return 'From here on he misses nothing, whichever replica he asks.';
    },
  );
  const url = `${feed}&waitSeconds=10&after=${next}`;
  return (settingName) =>
    walk.step('Carl waits for changes', { method: 'GET', url, token }, (response) => {
      same('the status', response.status, 200);
      const { changes } = JSON.parse(response.text) as { changes: { settingName: string }[] };
      same('the setting', changes.at(0)?.settingName, settingName);
      return 'Told within a second of the write; a client keeps its copy current this way.';
    });
}
