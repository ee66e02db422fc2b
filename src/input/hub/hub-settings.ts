/** Settings of the hub, from the environment variables of huggingface_hub and of proxies. */
import fs from 'node:fs';
import path from 'node:path';
import { usageError } from '../../base/errors.js';
import { cacheFolder } from '../../base/files/cache-folder.js';
import { quote } from '../../config/quote.js';

export type Environment = Readonly<Record<string, string | undefined>>;

export interface HubSettings {
  /** Address of the hub without a slash at the end. */
  readonly endpoint: string;
  /** Token for the host of the endpoint; undefined without one, and where it would travel unprotected. */
  readonly token: string | undefined;
  readonly isOffline: boolean;
  /** Cache of huggingface_hub, which is only read. */
  readonly userCache: string;
  /** Folder for what was fetched. */
  readonly headerCache: string;
  /** Milliseconds without a byte after which a request failed. */
  readonly timeout: number;
  /** Requests of one file or listing, the first included. */
  readonly attempts: number;
  readonly proxies: ProxySettings;
}

export interface ProxySettings {
  /** Proxy for https addresses; undefined for none. */
  readonly https: string | undefined;
  readonly http: string | undefined;
  /** Hosts that are reached without a proxy, as in NO_PROXY. */
  readonly except: readonly string[];
}

const DEFAULT_ENDPOINT = 'https://huggingface.co';

/** Seconds; huggingface_hub/constants.py, DEFAULT_DOWNLOAD_TIMEOUT. */
const DEFAULT_TIMEOUT = 10;

const MAX_ATTEMPTS = 5;

/** huggingface_hub/constants.py, ENV_VARS_TRUE_VALUES */
const isTrue = (value: string | undefined) => /^(?:1|on|yes|true)$/i.test(value ?? '');

/**
 * Reads the settings. The token is read from its file only here.
 * @param offline Value of `--offline`.
 * @throws UserError when a variable has an unusable value.
 */
export function hubSettings(
  { offline = false }: { readonly offline?: boolean },
  env: Environment,
  home: string,
): HubSettings {
  const given = (name: string) => env[name]?.trim() || undefined;
  const hubHome =
    given('HF_HOME') ??
    path.join(given('XDG_CACHE_HOME') ?? path.join(home, '.cache'), 'huggingface');
  const endpoint = endpointOf(given('HF_ENDPOINT'));
  return {
    endpoint,
    token: isProtected(endpoint) ? tokenOf(env, path.join(hubHome, 'token')) : undefined,
    isOffline: offline || isTrue(env.HF_HUB_OFFLINE) || isTrue(env.TRANSFORMERS_OFFLINE),
    userCache: given('HF_HUB_CACHE') ?? given('HUGGINGFACE_HUB_CACHE') ?? path.join(hubHome, 'hub'),
    headerCache: path.join(cacheFolder(env, process.platform, home), 'hub', cacheKey(endpoint)),
    timeout: 1000 * timeoutSeconds(given('HF_HUB_DOWNLOAD_TIMEOUT')),
    attempts: MAX_ATTEMPTS,
    proxies: proxiesOf(env),
  };
}

function endpointOf(given: string | undefined): string {
  if (given === undefined) return DEFAULT_ENDPOINT;
  const url = URL.canParse(given) ? new URL(given) : undefined;
  const isPlain = url && !url.username && !url.password && !url.search && !url.hash;
  if (isPlain && (url.protocol === 'https:' || url.protocol === 'http:')) {
    return url.href.replace(/\/+$/, '');
  }
  throw usageError(
    `HF_ENDPOINT: expected an address, found ${quote(given, 100)}`,
    'write it as in HF_ENDPOINT=https://huggingface.co',
  );
}

export const isLoopback = (host: string) =>
  /^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])$/.test(host);

/** Whether a token can be sent there: only encrypted, or within this machine. */
function isProtected(endpoint: string): boolean {
  const { protocol, hostname } = new URL(endpoint);
  return protocol === 'https:' || isLoopback(hostname);
}

/** Longer than any token. */
const MAX_TOKEN = 4096;

function tokenOf(env: Environment, defaultPath: string): string | undefined {
  if (isTrue(env.HF_HUB_DISABLE_IMPLICIT_TOKEN)) return undefined;
  const given = env.HF_TOKEN?.trim() || env.HUGGING_FACE_HUB_TOKEN?.trim();
  const token = given || tokenIn(env.HF_TOKEN_PATH?.trim() || defaultPath);
  if (!token) return undefined;
  if (/^[\x21-\x7e]+$/.test(token) && token.length <= MAX_TOKEN) return token;
  throw usageError(
    'the token for the hub has invalid characters',
    'set HF_TOKEN again, or run hf auth login',
  );
}

function tokenIn(file: string): string | undefined {
  try {
    const status = fs.statSync(file, { throwIfNoEntry: false });
    if (!status?.isFile() || status.size > MAX_TOKEN) return undefined;
    return fs.readFileSync(file, 'utf8').trim();
  } catch {
    // Without a readable token, the hub answers what it answers to everyone.
    return undefined;
  }
}

function timeoutSeconds(given: string | undefined): number {
  const seconds = Number(given ?? DEFAULT_TIMEOUT);
  return seconds > 0 && seconds <= 3600 ? seconds : DEFAULT_TIMEOUT;
}

/** Folder name of an endpoint, so that answers of a mirror are not mixed with those of the hub. */
const cacheKey = (endpoint: string): string =>
  encodeURIComponent(new URL(endpoint).href.replace(/^https:\/\//, '').replace(/\/+$/, ''));

function proxiesOf(env: Environment): ProxySettings {
  // curl(1): names in lower case take precedence.
  const either = (name: string) =>
    env[name.toLowerCase()]?.trim() || env[name]?.trim() || undefined;
  return {
    https: either('HTTPS_PROXY') ?? either('ALL_PROXY'),
    http: either('HTTP_PROXY') ?? either('ALL_PROXY'),
    except: (either('NO_PROXY') ?? '').split(/[\s,]+/).filter(Boolean),
  };
}
