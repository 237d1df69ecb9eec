/*
  Ransom notes. See assay-webshells.yar for the house rules of these files. A note speaks to its reader about the reader's files, in the
  voice of those who hold the key; texts about ransomware speak of attackers, victims and staff.
*/

rule Assay_Ransom_Note {
  meta:
    description = "Short text which says that files were encrypted or stolen and how to pay for the key"
    author = "Assay"
    date = "2026-11-17"
  strings:
    $you = "your " nocase
    $what1 = "encrypt" nocase
    $what2 = "locked" nocase
    $what3 = "stolen" nocase
    $what4 = "exfiltrat" nocase
    $what5 = "hacked" nocase
    $coin1 = "bitcoin" nocase
    $coin2 = " BTC"
    $coin3 = "monero" nocase
    $coin4 = " XMR"
    $coin5 = "cryptocurren" nocase
    $ask1 = "payment" nocase
    $ask2 = "wallet" nocase
    $coin6 = ".onion" nocase
    $coin7 = "tor browser" nocase
    $ask3 = "contact us" nocase
    $ask4 = "write to us" nocase
    $coin8 = "protonmail" nocase
    $coin9 = "tutanota" nocase
    $coin10 = "tox id" nocase
    $coin11 = "telegram" nocase
    $coin12 = "negotiat" nocase
    $ask5 = " pay " nocase
    $coin13 = "ransom" nocase
    $ask6 = "e-mail" nocase
    $ask7 = "price" nocase
    $coin14 = "proton.me" nocase
    $grip1 = "decryptor" nocase
    $grip2 = "decrypt" nocase
    $grip3 = "the key" nocase
    $grip4 = "unlock" nocase
    $word1 = "recover" nocase
    $word2 = "private key" nocase
    $grip5 = "rename" nocase
    $word3 = "modify" nocase
    $word4 = "third party" nocase
    $grip6 = "personal id" nocase
    $grip7 = "double" nocase
    $word5 = "permanent" nocase
    $word6 = "publish" nocase
    $grip8 = " leak" nocase
    $grip9 = "for free" nocase
    $word7 = " hours" nocase
    $grip10 = "police" nocase
    $word8 = "law enforcement" nocase
    $grip11 = "recovery compan" nocase
    $grip12 = "only way" nocase
    $word9 = "as proof" nocase
    $word10 = "guarantee" nocase
    $word11 = "deadline" nocase
    $word12 = "your files" nocase
    $word13 = "your data" nocase
    $word14 = "your company" nocase
    $about1 = "attacker" nocase
    $about2 = "incident" nocase
    $about3 = "this tool" nocase
    $about4 = "victim" nocase
    $about5 = "criminal" nocase
    $about6 = "phishing" nocase
    $about7 = "help desk" nocase
  condition:
    filesize < 8KB and (#you > 1 or any of ($what*)) and any of ($coin*, $ask*) and 3 of ($coin*, $grip*) and 5 of ($coin*, $grip*, $ask*, $word*)
    and not any of ($about*)
}
