import { TextDecoder } from 'node:util';
import { SETTING_NAME_RULE, parseSettingName } from '@platform/setting-names';
import type { SettingName } from '@platform/setting-names';
import { JsonScanner } from '../settings/json-scanner';
import type { SettingKey } from '../settings/setting-key';
import { MAX_VALUE_DEPTH, faultOf } from '../settings/setting-value';
import type { JsonText } from '../settings/setting-value';
import type { StoredSetting } from '../settings/setting.entity';

/** A setting parsed from a line of a file. */
export interface MovedSetting {
  readonly key: SettingKey;
  readonly value: JsonText;
}

/**
 * A line of a file is not a valid setting. The message has the line number and none of the line's content.
 */
export class SettingLineError extends Error {
  override readonly name = 'SettingLineError';
}

// With the `u` flag, \p{Cs} matches unpaired surrogates only.
const LONE_SURROGATE = /\p{Cs}/u;

/**
 * Yields the lines of a file without their line ends. node:readline is no option: it also splits at U+2028.
 * @throws {SettingLineError} if the bytes are not UTF-8
 */
export async function* linesOf(chunks: AsyncIterable<Uint8Array | string>): AsyncGenerator<string> {
  const decoder = new TextDecoder('utf-8', { fatal: true });
  let [rest, number] = ['', 1];
  for await (const chunk of chunks) {
    rest += typeof chunk === 'string' ? chunk : decode(decoder, chunk, number);
    const lines = rest.split('\n');
    rest = lines.pop() ?? '';
    number += lines.length;
    yield* lines;
  }
  yield rest;
}

function decode(decoder: TextDecoder, chunk: Uint8Array, number: number): string {
  try {
    return decoder.decode(chunk, { stream: true });
  } catch (error) {
    throw new SettingLineError(`line ${String(number)} or after: not UTF-8`, { cause: error });
  }
}

/**
 * Returns a setting as a line of JSON. `valueText` is a JSON string, because a value may contain line breaks
 * and must survive byte for byte.
 */
export function lineOf({ subsystemName, settingName, valueText }: StoredSetting): string {
  return `${JSON.stringify({ subsystemName, settingName, valueText })}\n`;
}

/**
 * Parses a line.
 * @throws {SettingLineError}
 */
export function settingOf(line: string, number: number): MovedSetting {
  const { subsystemName, settingName, valueText } = parse(line, number);
  const name = (text: unknown, member: string): SettingName => {
    const parsed = typeof text === 'string' ? parseSettingName(text) : null;
    if (parsed !== null) return parsed;
    throw new SettingLineError(`line ${String(number)}: ${member} ${SETTING_NAME_RULE}`);
  };
  const key = { subsystem: name(subsystemName, 'subsystemName'), setting: name(settingName, 'settingName') };
  return { key, value: valueOf(valueText, number) };
}

function parse(line: string, number: number): Record<string, unknown> {
  try {
    const parsed: unknown = JSON.parse(line);
    if (typeof parsed === 'object' && parsed !== null) return parsed as Record<string, unknown>;
  } catch (error) {
    throw new SettingLineError(`line ${String(number)}: not JSON`, { cause: error });
  }
  throw new SettingLineError(`line ${String(number)}: not an object`);
}

function valueOf(text: unknown, number: number): JsonText {
  if (typeof text !== 'string') throw new SettingLineError(`line ${String(number)}: valueText is required`);
  const scanner = new JsonScanner(text, MAX_VALUE_DEPTH);
  try {
    scanner.skipValue();
    scanner.expectEnd();
  } catch (error) {
    throw new SettingLineError(`line ${String(number)}: valueText ${(error as Error).message}`, {
      cause: error,
    });
  }
  const fault = LONE_SURROGATE.test(text) ? 'is not well-formed Unicode' : faultOf(text);
  if (fault !== null) throw new SettingLineError(`line ${String(number)}: valueText ${fault}`);
  return text as JsonText;
}
