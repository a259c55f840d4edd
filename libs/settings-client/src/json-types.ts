import type { JsonValue } from './platform-setting';

/** A deeply read-only value. A watch freezes its values, because all readers share them. */
export type DeepReadonly<T> = [JsonValue] extends [T]
  ? T
  : T extends object
    ? { readonly [Member in keyof T]: DeepReadonly<T[Member]> }
    : T;

/**
 * `T` if JSON can hold it, interfaces included; `never` for what JSON would lose: functions, symbols,
 * bigints, and objects with methods such as dates and maps.
 */
export type JsonCompatible<T> = [T] extends [JsonValue | undefined]
  ? T
  : T extends (...args: never[]) => unknown
    ? never
    : T extends object
      ? { readonly [Member in keyof T]: JsonCompatible<T[Member]> }
      : T extends string | number | boolean | null | undefined
        ? T
        : never;
