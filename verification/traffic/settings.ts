import { randomUUID } from 'node:crypto';
import type { Outcome } from './caller.ts';
import type { LoadContext } from './context.ts';
import { operationOf } from './journal.ts';

/** Only the workers of the run write settings of this subsystem. */
export const SUBSYSTEM = 'chaos';

/** A setting, by default of the run's own subsystem. */
export interface SettingName {
  readonly name: string;
  readonly subsystem?: string;
}

export function settingUrl({ urls }: LoadContext, { name, subsystem = SUBSYSTEM }: SettingName): string {
  return `${urls.settings}/platform/v1/subsystems/${subsystem}/settings/${name}`;
}

/** Writes a setting. @param value must be unique: it identifies the write */
export async function putSetting(
  context: LoadContext,
  setting: SettingName,
  value: string,
): Promise<Outcome> {
  const { caller, journal, admin } = context;
  const outcome = await caller.persist({
    operation: 'PUT setting',
    url: settingUrl(context, setting),
    token: admin.token,
    idempotencyKey: randomUUID(),
    body: { settingValue: value },
  });
  journal.settings.push(operationOf(value, setting.name, outcome));
  return outcome;
}

export function readSetting(context: LoadContext, setting: SettingName): Promise<Outcome> {
  const url = `${settingUrl(context, setting)}/value`;
  return context.caller.persist({ operation: 'GET setting value', url, token: context.admin.token });
}
