/** Runs the compressed program of the page: the policy of the page has the hash of its text. */
import { unpackedText } from './unpack.js';

void unpackedText('program').then((text) => {
  const script = document.createElement('script');
  script.textContent = text;
  document.body.append(script);
});
