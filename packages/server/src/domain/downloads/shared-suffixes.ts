/** Labels below a country that registries sell names under, as in `co.uk`. */
const registryLabels = toSet(
  'ac asn co com coop edu firm gen go gob gouv gov gv id ind info int ltd me mil ne net nhs nom or org plc sch web',
)

/** Domains below which anyone can get a host: hosting, dynamic DNS, tunnels, names that are sold below a domain. */
const sharedDomains = toSet(`
  cloudfront.net awsapprunner.com amplifyapp.com azurewebsites.net azurefd.net azureedge.net
  cloudapp.net azurestaticapps.net web.app firebaseapp.com cloudfunctions.net hf.space synology.me myqnapcloud.com
  googleusercontent.com blogspot.com translate.goog ondigitalocean.app r2.dev workers.dev pages.dev trycloudflare.com
  r2.cloudflarestorage.com cloudflarestorage.com ts.net ovh.net
  github.io githubusercontent.com gitlab.io gitpod.io github.dev bitbucket.io netlify.app vercel.app now.sh herokuapp.com
  onrender.com fly.dev surge.sh glitch.me repl.co replit.dev deno.dev readthedocs.io
  loca.lt serveo.net localhost.run
  duckdns.org dyndns.org no-ip.org no-ip.com ddns.net hopto.org zapto.org dynu.net freeddns.org sytes.net myftp.org
  nip.io sslip.io xip.io wordpress.com wixsite.com weebly.com squarespace.com myshopify.com zendesk.com sharepoint.com
  fastly.net akamaized.net akamaihd.net edgekey.net b-cdn.net cdn77.org
  eu.org us.com uk.com uk.net de.com eu.com gb.net jpn.com br.com cn.com ru.com za.com co.com in.net
`)

/** Domains of clouds and tunnels that give out names on several levels, such as `s3.eu-central-1.amazonaws.com`. */
const clouds = toSet(`
  amazonaws.com amazonaws.com.cn core.windows.net cloudapp.azure.com googleapis.com oraclecloud.com aliyuncs.com
  myqcloud.com digitaloceanspaces.com linodeobjects.com vultrobjects.com backblazeb2.com wasabisys.com scw.cloud
  your-objectstorage.com elasticbeanstalk.com on.aws azurecontainerapps.io appspot.com run.app railway.app
  ngrok.io ngrok.app ngrok.dev ngrok-free.app ngrok-free.dev
`)

/**
 * Whether hosts below a name belong to different people, so that a wildcard there would give a credential to strangers.
 * Covers top-level domains, the usual second level of countries, and large providers. This is not the Public Suffix
 * List, which changes weekly: the documents tell people to name hosts where they can.
 */
export function isSharedSuffix(domain: string): boolean {
  const labels = domain.split('.')
  const [second = '', top = ''] = labels.slice(-2)
  if (labels.length < 2 || (labels.length === 2 && top.length === 2 && registryLabels.has(second))) return true
  if (sharedDomains.has(domain) || labels.some((_, i) => clouds.has(labels.slice(i).join('.')))) return true
  // A wildcard for windows.net would contain all hosts below core.windows.net.
  return [...sharedDomains, ...clouds].some((shared) => shared.endsWith(`.${domain}`))
}

function toSet(words: string): Set<string> {
  return new Set(words.trim().split(/\s+/))
}
